//! Who comes in, and which request is whose.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{header, HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use dq_serve::answer::json_text;
use dq_serve::sites;

use super::many;
use super::openapi;
use super::place::Place;
use super::refusal::Refusal;
use super::requests::Caller;
use super::shared::Inbound;
use super::tokens::{forbidden, Verb};

/// What is asked for, as metrics say it.
const NAMES: [&str; 5] = ["add", "get", "cancel", "signal", "other"];

/// Answers a request, and counts it.
pub async fn answer(State(inbound): State<Arc<Inbound>>, request: Request) -> Response {
    let from = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let from = from.map_or(IpAddr::from([0; 4]), |from| from.0.ip().to_canonical());
    let place = Place::of(request.uri().path());
    let verb = place
        .as_ref()
        .and_then(|place| verb(place, request.method()));
    let (mut token, mut why) = (None, None);
    let answered = carry_out(&inbound, from, place, verb, request, &mut token).await;
    let response = answered.unwrap_or_else(|refusal| {
        why = refusal.why;
        refusal.into_response()
    });
    let asked = NAMES[verb.map_or(NAMES.len() - 1, |verb| verb as usize)];
    inbound.counts.answered(asked, response.status().as_u16());
    if let Some(why) = why {
        inbound.refused(from, why, token.as_deref());
    }
    response
}

fn verb(place: &Place, method: &Method) -> Option<Verb> {
    match (place, method) {
        (Place::Jobs(_) | Place::Many(_), &Method::POST) => Some(Verb::Add),
        (Place::Job(..), &Method::GET) => Some(Verb::Get),
        (Place::Job(..), &Method::DELETE) => Some(Verb::Cancel),
        (Place::Signal(..), &Method::POST) => Some(Verb::Signal),
        _ => None,
    }
}

/// `name`: that of the token, once it is known.
async fn carry_out(
    inbound: &Arc<Inbound>,
    from: IpAddr,
    place: Option<Place>,
    verb: Option<Verb>,
    request: Request,
    name: &mut Option<String>,
) -> Result<Response, Refusal> {
    if place == Some(Place::OpenApi) && request.method() == Method::GET {
        return Ok(json_text(openapi::document().to_string()));
    }
    let tokens = inbound.tokens();
    of_no_browser(request.headers(), tokens.are_needed())?;
    let Some(token) = tokens.find(bearer(request.headers())) else {
        let guessed = inbound.throttle.check(from, || None::<()>).await;
        return Err(match guessed {
            Ok(_) => Refusal::new(
                StatusCode::UNAUTHORIZED,
                "a token is needed: Authorization: Bearer TOKEN",
            )
            .because("token"),
            Err(_) => Refusal::later(StatusCode::TOO_MANY_REQUESTS, "too many wrong tokens", 1)
                .because("guesses"),
        });
    };
    *name = Some(token.name.clone()).filter(|name| !name.is_empty());
    let place = place.ok_or_else(|| Refusal::unknown("path"))?;
    let is_many = matches!(place, Place::Many(_));
    let Some(verb) = verb else {
        return Ok(not_this_method(&place));
    };
    let (queue, id) = match place {
        Place::OpenApi => return Err(Refusal::unknown("path")),
        Place::Jobs(queue) | Place::Many(queue) => (queue, None),
        Place::Job(queue, id) | Place::Signal(queue, id) => (queue, Some(id)),
    };
    token.may(verb, &queue)?;
    id.as_deref().map_or(Ok(()), |id| token.has(id))?;
    let caller = Caller {
        inbound,
        token,
        queue,
        from,
    };
    let id = id.unwrap_or_default();
    match verb {
        Verb::Add if is_many => many::add(&caller, request).await,
        Verb::Add => caller.add(request).await,
        Verb::Get => caller.get(&id, request.uri().query()).await,
        Verb::Cancel => caller.cancel(&id, request.uri().query()).await,
        Verb::Signal => caller.signal(&id, request).await,
    }
}

fn not_this_method(place: &Place) -> Response {
    let allowed = match place {
        Place::Jobs(_) | Place::Many(_) | Place::Signal(..) => "POST",
        Place::Job(..) => "GET, DELETE",
        Place::OpenApi => "GET",
    };
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "not this method");
    ([(header::ALLOW, allowed)], refusal).into_response()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let said = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    said.strip_prefix("Bearer ").map(str::trim)
}

/// Pages of browsers have nothing to ask for here: what a page can send without being asked for leave, it would send
/// as whoever looks at it.
fn of_no_browser(headers: &HeaderMap, needs_tokens: bool) -> Result<(), Refusal> {
    if sites::is_of_another_site(headers) || headers.contains_key(header::ORIGIN) {
        return Err(forbidden("pages of browsers are not served").because("browser"));
    }
    match needs_tokens || sites::is_for_us(headers, &[]) {
        true => Ok(()),
        false => {
            let refusal = Refusal::new(
                StatusCode::MISDIRECTED_REQUEST,
                "not this host name without tokens",
            );
            Err(refusal.because("host"))
        }
    }
}
