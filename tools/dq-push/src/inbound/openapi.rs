//! What the way in takes and answers, as OpenAPI 3.1. The options of a job come from the table of `said.rs`.

use serde_json::{json, Map, Value};

use super::said::{self, Said, Shape};

pub fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "dq http",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Adds delayed jobs to the queues of a Redis or Valkey server, shows, cancels and signals them.",
            "description": "Durations are milliseconds, instants milliseconds of unix time. A body of another type than \
                application/json is a job's payload as it is; the options then stand in headers: Dq-Delay, Dq-After-Group.",
            "license": { "name": "BSD-3-Clause", "identifier": "BSD-3-Clause" },
        },
        "security": [{ "token": [] }],
        "paths": {
            "/queues/{queue}/jobs": { "post": add() },
            "/queues/{queue}/many": { "post": many() },
            "/queues/{queue}/jobs/{id}": { "get": get(), "delete": cancel() },
            "/queues/{queue}/jobs/{id}/signal": { "post": signal() },
        },
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": {
                "NewJob": new_job(),
                "Added": added(),
                "Job": job(),
                "Signal": signal_schema(),
                "Error": error(),
            },
        },
    })
}

fn schema(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn content(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn path(names: &[&str]) -> Vec<Value> {
    let text = json!({ "type": "string", "minLength": 1 });
    let one = |name: &&str| json!({ "name": name, "in": "path", "required": true, "schema": text });
    names.iter().map(one).collect()
}

/// These answers, and those that are refused.
fn responses(good: &[(&str, &str, Option<Value>)], refused: &[&str]) -> Value {
    let mut all = Map::new();
    for (status, description, schema) in good {
        let mut one = json!({ "description": description });
        if let Some(schema) = schema {
            one["content"] = content(schema);
        }
        all.insert((*status).to_owned(), one);
    }
    let known = [
        ("400", "An argument is wrong; `argument` is its name."),
        ("401", "No token, or a wrong one."),
        ("403", "The token may not do that."),
        ("404", "There is no such queue or job, as far as the token goes."),
        ("409", "A worker has the job."),
        ("413", "Too large."),
        ("429", "The token's rate is used up, or the queue is full."),
        ("503", "The server is away, or full. What was asked for may have been carried out: ask again, with the same id."),
    ];
    for (status, description) in known.iter().filter(|(status, _)| refused.contains(status)) {
        let mut one = json!({ "description": description, "content": content(&schema("Error")) });
        if ["429", "503"].contains(status) {
            let seconds = json!({ "type": "integer", "minimum": 1 });
            one["headers"] =
                json!({ "Retry-After": { "description": "Seconds.", "schema": seconds } });
        }
        all.insert((*status).to_owned(), one);
    }
    Value::Object(all)
}

fn add() -> Value {
    let mut parameters = path(&["queue"]);
    parameters.push(json!({
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The job's id, if the job says none.",
        "schema": { "type": "string", "minLength": 1, "maxLength": 1024 },
    }));
    json!({
        "operationId": "addJob",
        "summary": "Adds a job.",
        "description": "Options may be headers, too, as Dq-Delay for `delay`; the body, if it is no JSON, then is the payload.",
        "parameters": parameters,
        "requestBody": { "required": true, "content": content(&schema("NewJob")) },
        "responses": responses(
            &[
                ("201", "The job is new.", Some(schema("Added"))),
                ("200", "The queue holds or remembers a job with this id.", Some(schema("Added"))),
            ],
            &["400", "401", "403", "404", "413", "429", "503"],
        ),
    })
}

fn many() -> Value {
    let jobs =
        json!({ "type": "array", "items": schema("NewJob"), "minItems": 1, "maxItems": 10_000 });
    let each = json!({ "type": "array", "items": schema("Added") });
    json!({
        "operationId": "addJobs",
        "summary": "Adds many jobs: one command for all that have the same options, and an answer for each in their order.",
        "parameters": path(&["queue"]),
        "requestBody": { "required": true, "content": content(&jobs) },
        "responses": responses(
            &[
                ("201", "All are new.", Some(each.clone())),
                ("200", "All are there.", Some(each.clone())),
                ("207", "Some were refused.", Some(each)),
            ],
            &["400", "401", "403", "404", "413", "429", "503"],
        ),
    })
}

fn get() -> Value {
    let mut parameters = path(&["queue", "id"]);
    parameters.push(json!({
        "name": "wait",
        "in": "query",
        "description": "Answer as soon as the job has ended, or after so many seconds.",
        "schema": { "type": "number", "minimum": 0, "maximum": 60 },
    }));
    json!({
        "operationId": "getJob",
        "summary": "Shows a job, or how it ended.",
        "parameters": parameters,
        "responses": responses(
            &[("200", "The job.", Some(schema("Job")))],
            &["400", "401", "403", "404", "429", "503"],
        ),
    })
}

fn cancel() -> Value {
    let mut parameters = path(&["queue", "id"]);
    parameters.push(json!({
        "name": "unreserved",
        "in": "query",
        "description": "Leave the job to a worker that has it.",
        "schema": { "type": "boolean" },
    }));
    json!({
        "operationId": "cancelJob",
        "summary": "Removes a job.",
        "parameters": parameters,
        "responses": responses(
            &[("204", "It is removed.", None)],
            &["400", "401", "403", "404", "409", "429", "503"],
        ),
    })
}

fn signal() -> Value {
    json!({
        "operationId": "signalJob",
        "summary": "Sends a job a signal, which is stored as a step; the first of a name counts.",
        "parameters": path(&["queue", "id"]),
        "requestBody": { "required": true, "content": content(&schema("Signal")) },
        "responses": responses(
            &[("201", "It is set.", None), ("200", "It was set already.", None)],
            &["400", "401", "403", "404", "413", "429", "503"],
        ),
    })
}

/// A JSON value under a name, or bytes in base64 under another.
fn payload(name: &str, about: &str, into: &mut Map<String, Value>) {
    into.insert(name.to_owned(), json!({ "description": about }));
    let base64 = json!({ "type": "string", "contentEncoding": "base64", "description": "Any bytes instead." });
    into.insert(format!("{name}_base64"), base64);
}

fn new_job() -> Value {
    let mut properties = Map::new();
    let about = "What a worker gets: a text as it is, any other JSON as it is written.";
    payload("payload", about, &mut properties);
    for said in [said::ID].into_iter().chain(said::all()) {
        let mut shape = shape(&said);
        shape["description"] = said.about.into();
        properties.insert(said.name.to_owned(), shape);
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn shape(said: &Said) -> Value {
    let number = |least: i64, most: i64| json!({ "type": "integer", "format": "int64", "minimum": least, "maximum": most });
    let text = |most: usize| json!({ "type": "string", "minLength": 1, "maxLength": most });
    match said.shape {
        Shape::Number { least, most } => number(least, most),
        Shape::Text { most } => text(most),
        Shape::Ladder => {
            json!({ "type": "array", "items": number(1, said::LAST), "maxItems": said::LADDER_MAX })
        }
        Shape::Ids { most } => {
            json!({ "type": "array", "items": text(1024), "minItems": 1, "maxItems": most })
        }
        Shape::Word(known) => {
            let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            json!({ "type": "string", "enum": known })
        }
    }
}

fn added() -> Value {
    let status = "Of many jobs: what this one alone would have been answered.";
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string" },
            "id_base64": { "type": "string", "description": "Instead of an id that is no text." },
            "status": { "type": "integer", "description": status },
            "error": { "type": "string" },
            "argument": { "type": "string" },
        },
    })
}

fn job() -> Value {
    let states = [
        "blocked", "delayed", "ready", "reserved", "dead", "done", "deleted", "expired",
    ];
    let instant = json!({ "type": "integer", "format": "int64" });
    json!({
        "type": "object",
        "description": "Fields as DQ.GET names them, with _ for -; those without a value are left out. A field of bytes \
            that are no text has _base64 behind its name.",
        "properties": {
            "id": { "type": "string" },
            "state": { "type": "string", "enum": states },
            "payload": { "type": "string" },
            "payload_base64": { "type": "string" },
            "attempts": { "type": "integer" },
            "due": instant,
            "reason": { "type": "string" },
            "failed": instant,
            "result": { "type": "string" },
            "result_base64": { "type": "string" },
            "finished": instant,
            "progress": { "type": "string" },
        },
        "required": ["state"],
        "additionalProperties": true,
    })
}

fn signal_schema() -> Value {
    let mut properties = Map::new();
    payload("value", "What the handler gets.", &mut properties);
    properties.insert(
        "name".to_owned(),
        json!({ "type": "string", "minLength": 1, "maxLength": 256 }),
    );
    json!({ "type": "object", "properties": properties, "required": ["name"], "additionalProperties": false })
}

fn error() -> Value {
    json!({
        "type": "object",
        "properties": { "error": { "type": "string" }, "argument": { "type": "string" } },
        "required": ["error"],
    })
}
