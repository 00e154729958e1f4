//! A job as a request gives it: what is asked for, and whether the token may.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, StatusCode};
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use serde_json::value::RawValue;

use super::refusal::Refusal;
use super::said::{self, Given, Said};
use super::tokens::{forbidden, Token, Verb};

/// The header that names the job, as other services have it. Its value may stand in quotation marks.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// What a request says, not yet checked.
#[derive(Default)]
pub struct Asked {
    pub given: BTreeMap<&'static str, Given>,
    pub payload: Vec<u8>,
}

pub type Object<'a> = BTreeMap<String, &'a RawValue>;

impl Asked {
    /// Of the headers, with the body as the payload.
    pub fn of_headers(headers: &HeaderMap) -> Result<Asked, Refusal> {
        let mut asked = Asked::default();
        for (name, value) in headers {
            let name = name.as_str();
            let value = value.as_bytes();
            if name == IDEMPOTENCY_KEY {
                let bare = value
                    .strip_prefix(b"\"")
                    .and_then(|it| it.strip_suffix(b"\""));
                asked.give(said::ID.name, Given::Header(bare.unwrap_or(value).to_vec()))?;
            } else if let Some(option) = name.strip_prefix("dq-") {
                let option = option.replace('-', "_");
                let said = said::find(&option).ok_or_else(|| unknown(name))?;
                asked.give(said.name, Given::Header(value.to_vec()))?;
            }
        }
        Ok(asked)
    }

    /// Of JSON: the options beside the payload.
    pub fn and_of_json(mut self, object: &Object) -> Result<Asked, Refusal> {
        let mut payload = None;
        for (name, value) in object {
            if let Some(bytes) = bytes("payload", name, value)? {
                if payload.replace(bytes).is_some() {
                    return Err(twice("payload"));
                }
                continue;
            }
            let said = said::find(name).ok_or_else(|| unknown(name))?;
            let value = serde_json::from_str(value.get()).map_err(|error| not_json(&error))?;
            self.give(said.name, Given::Json(value))?;
        }
        self.payload = payload.ok_or_else(|| missing("payload"))?;
        Ok(self)
    }

    fn give(&mut self, name: &'static str, value: Given) -> Result<(), Refusal> {
        match self.given.insert(name, value) {
            None => Ok(()),
            Some(_) => Err(twice(name)),
        }
    }
}

/// Bytes of JSON, under `wanted`, as a string or as any other value, which is kept as it is written; or under the same
/// name with `_base64`.
pub fn bytes(
    wanted: &'static str,
    name: &str,
    value: &RawValue,
) -> Result<Option<Vec<u8>>, Refusal> {
    let text = || serde_json::from_str::<String>(value.get());
    match name.strip_prefix(wanted) {
        Some("") if value.get().starts_with('"') => text()
            .map(|it| Some(it.into_bytes()))
            .map_err(|error| not_json(&error)),
        Some("") => Ok(Some(value.get().as_bytes().to_vec())),
        Some("_base64") => {
            let decoded = text().ok().and_then(|it| STANDARD.decode(it).ok());
            let wrong = || Refusal::argument(wanted, &format!("{name}: a text in base64"));
            decoded.map(Some).ok_or_else(wrong)
        }
        _ => Ok(None),
    }
}

pub fn unknown(name: &str) -> Refusal {
    Refusal::asked(&format!("{name}: there is no such option"))
}

fn twice(name: &'static str) -> Refusal {
    Refusal::argument(name, &format!("{name} is given twice"))
}

pub fn missing(name: &'static str) -> Refusal {
    Refusal::argument(name, &format!("{name} is missing"))
}

pub fn not_json(error: &serde_json::Error) -> Refusal {
    Refusal::asked(&format!("not the JSON that is expected: {error}"))
}

/// A job to be added.
pub struct Job {
    pub id: Vec<u8>,
    /// Whether the request left its id to us.
    pub is_made: bool,
    pub payload: Vec<u8>,
    /// The options, as the command has them.
    pub words: Vec<Vec<u8>>,
    /// Whether DQ.MADD takes all of them.
    pub of_many: bool,
    /// Whether it is only to take another job's place.
    pub must_exist: bool,
    /// Whether it does no harm to add it twice.
    pub again: bool,
}

impl Job {
    pub fn new(asked: Asked, token: &Token) -> Result<Job, Refusal> {
        let Asked { mut given, payload } = asked;
        let id = given.remove(said::ID.name);
        let is_made = id.is_none();
        let id = match id {
            // To the command this is none.
            Some(id) if id.bytes().as_deref() == Some(b"*") => {
                return Err(Refusal::argument(said::ID.name, "id: not * alone"));
            }
            Some(id) => words(&said::ID, &id)?.concat(),
            None => made(&token.prefix)?,
        };
        token.has(&id).map_err(|it| Refusal {
            argument: Some(said::ID.name),
            ..it
        })?;
        check_after(&given, token)?;
        let (mut all, mut of_many) = (Vec::new(), true);
        let mut condition = Vec::new();
        for said in said::all() {
            let Some(value) = allowed(&said, given.remove(said.name), token)? else {
                continue;
            };
            of_many &= said.of_many;
            let said_in_words = words(&said, &value)?;
            if said.name == said::IF_EXISTS {
                condition = said_in_words.concat();
            }
            all.extend(said_in_words);
        }
        let replaces = [&b"REPLACE"[..], b"XX"].contains(&&*condition);
        if replaces && !token.verbs.contains(&Verb::Cancel) {
            let refusal = forbidden("if_exists: this token may not take a job's place");
            return Err(Refusal {
                argument: Some(said::IF_EXISTS),
                ..refusal.because("verb")
            });
        }
        Ok(Job {
            id,
            is_made,
            payload,
            words: all,
            of_many: of_many && condition != b"NEXT",
            must_exist: condition == b"XX",
            again: condition.is_empty() || condition == b"NX",
        })
    }
}

impl Job {
    /// 201 for a job that is new, 200 for one that was there.
    pub fn answered(&self, reply: &redis::Value) -> Result<StatusCode, Refusal> {
        match reply {
            redis::Value::Nil if self.must_exist => Err(Refusal::unknown("job")),
            // An earlier sending added it, and its reply was lost.
            redis::Value::Nil if self.is_made => Ok(StatusCode::CREATED),
            redis::Value::Nil => Ok(StatusCode::OK),
            _ if self.must_exist => Ok(StatusCode::OK),
            _ => Ok(StatusCode::CREATED),
        }
    }
}

fn words(said: &Said, value: &Given) -> Result<Vec<Vec<u8>>, Refusal> {
    said.words(value).ok_or_else(|| Refusal::wrong(said))
}

/// Of other jobs it may name those that it has, and its own group.
fn check_after(given: &BTreeMap<&'static str, Given>, token: &Token) -> Result<(), Refusal> {
    if let Some(after) = given.get(said::AFTER) {
        let ids = after.list(Given::bytes).unwrap_or_default();
        let has_all = ids.iter().try_for_each(|id| token.has(id));
        has_all.map_err(|it| Refusal {
            argument: Some(said::AFTER),
            ..it
        })?;
    }
    let Some(group) = given.get(said::AFTER_GROUP) else {
        return Ok(());
    };
    let own = token.fixed.iter().find(|(name, _)| *name == "group");
    let is_own = own.is_some_and(|(_, own)| group.bytes().as_deref() == Some(own.as_bytes()));
    match is_own || (own.is_none() && token.prefix.is_empty()) {
        true => Ok(()),
        false => Err(bound(said::AFTER_GROUP, "not of this token's own group")),
    }
}

/// The value that the job gets: what is said, if the token may say it, or what the token says.
fn allowed(said: &Said, given: Option<Given>, token: &Token) -> Result<Option<Given>, Refusal> {
    if let Some((_, fixed)) = token.fixed.iter().find(|(name, _)| *name == said.name) {
        let is_it = given.is_none_or(|it| it.bytes().as_deref() == Some(fixed.as_bytes()));
        return match is_it {
            true => Ok(Some(Given::Json(fixed.as_str().into()))),
            false => Err(bound(said.name, "not what this token's jobs have")),
        };
    }
    let Some((_, (least, most))) = token.bounds.iter().find(|(it, _)| it.name == said.name) else {
        return Ok(given);
    };
    match (&given, said.unsaid()) {
        (Some(value), _) => match value.number() {
            Some(number) if !(*least..=*most).contains(&number) => Err(bound(
                said.name,
                &format!("this token's jobs have {least} to {most}"),
            )),
            _ => Ok(given),
        },
        (None, Some(number)) if !(*least..=*most).contains(&number) => {
            Ok(Some(Given::Json(number.clamp(*least, *most).into())))
        }
        (None, None) if said.is_unbounded() => Ok(Some(Given::Json((*most).into()))),
        (None, _) => Ok(None),
    }
}

fn bound(name: &'static str, why: &str) -> Refusal {
    let refusal = forbidden(&format!("{name}: {why}")).because("bound");
    Refusal {
        argument: Some(name),
        ..refusal
    }
}

/// An id that no other job has.
fn made(prefix: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| Refusal::unavailable("no random number"))?;
    Ok([
        prefix,
        format!("{:032x}", u128::from_be_bytes(random)).as_bytes(),
    ]
    .concat())
}
