//! Written from src/queue/attr/rows.rs by `make generated`; DO NOT EDIT.

/// Says of a job what the arguments do.
#[rustfmt::skip]
macro_rules! said {
    ($job:ident, $args:ident) => {
        if let Some(value) = $args.integer("priority").map(|it| it as i32) {
            $job = $job.priority(value);
        }
        if let Some(value) = $args.length("ttr") {
            $job = $job.ttr(value);
        }
        if let Some(value) = $args.integer("attempts").map(|it| it as u32) {
            $job = $job.attempts(value);
        }
        if let Some(value) = $args.length("ttl") {
            $job = $job.ttl(value);
        }
        if let Some(value) = $args.get("group").map(|_| $args.text("group")) {
            $job = $job.group(value);
        }
        if let Some(value) = $args.length("keep") {
            $job = $job.keep(value);
        }
        if let Some(value) = $args.integer("cost").map(|it| it as u32) {
            $job = $job.cost(value);
        }
        if let Some(value) = $args.lengths("backoff") {
            $job = $job.backoff(value);
        }
        if let Some(value) = $args.get("label").map(|_| $args.text("label")) {
            $job = $job.label(value);
        }
    };
}
pub(crate) use said;
