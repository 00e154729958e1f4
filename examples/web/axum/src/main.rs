use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use dq_redis::{BoxError, Handler, Job, Queue, Worker};
use serde_json::{json, Value};
use std::time::Duration;
use tokio::net::TcpListener;

const HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60);

type Answer = Result<(StatusCode, Json<Value>), (StatusCode, String)>;

fn unavailable(error: dq_redis::Error) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

async fn place(State(queue): State<Queue>, Path(order): Path<u32>) -> Answer {
    let adding = queue.add(&order).id(format!("close:{order}"));
    match adding.delay(HALF_AN_HOUR).await.map_err(unavailable)? {
        Some(_) => Ok((StatusCode::CREATED, Json(json!({ "order": order })))),
        None => Err((StatusCode::CONFLICT, "there is such an order".into())),
    }
}

async fn pay(State(queue): State<Queue>, Path(order): Path<u32>) -> Answer {
    let cancelling = queue.delete_unreserved([format!("close:{order}")]);
    match cancelling.await.map_err(unavailable)? {
        0 => Err((StatusCode::CONFLICT, "closed or unknown".into())),
        _ => Ok((StatusCode::OK, Json(json!({ "paid": order })))),
    }
}

async fn close_order(job: Job<u32>) -> Result<(), std::io::Error> {
    println!("closed order {}", job.data);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let queue = Queue::open("redis://localhost", "orders")?;
    let handler = Handler::new(close_order)
        .attempts(5)
        .backoff([60, 300, 600].map(Duration::from_secs));
    let worker = Worker::new(&queue).handler(handler).concurrency(10);
    let app = Router::new()
        .route("/orders/{number}", post(place))
        .route("/orders/{number}/paid", post(pay))
        .with_state(queue);

    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    let serving = async {
        let server = axum::serve(listener, app).with_graceful_shutdown(dq_redis::shutdown());
        server.await.map_err(BoxError::from)
    };
    let working = async {
        let until = dq_redis::shutdown();
        worker.run_until(until).await.map_err(BoxError::from)
    };
    tokio::try_join!(serving, working)?;
    Ok(())
}
