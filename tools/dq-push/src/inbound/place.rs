//! What a path names.

use percent_encoding::{percent_decode_str, percent_encode, NON_ALPHANUMERIC};

#[derive(Debug, PartialEq)]
pub enum Place {
    /// What this is, for generators of clients.
    OpenApi,
    Jobs(Vec<u8>),
    Many(Vec<u8>),
    Job(Vec<u8>, Vec<u8>),
    Signal(Vec<u8>, Vec<u8>),
}

impl Place {
    /// Queues and ids are percent-encoded: they may have any bytes.
    pub fn of(path: &str) -> Option<Place> {
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        let bytes = |part: &str| {
            Some(percent_decode_str(part).collect()).filter(|it: &Vec<u8>| !it.is_empty())
        };
        match parts[..] {
            ["openapi.json"] => Some(Place::OpenApi),
            ["queues", queue, "jobs"] => Some(Place::Jobs(bytes(queue)?)),
            ["queues", queue, "many"] => Some(Place::Many(bytes(queue)?)),
            ["queues", queue, "jobs", id] => Some(Place::Job(bytes(queue)?, bytes(id)?)),
            ["queues", queue, "jobs", id, "signal"] => {
                Some(Place::Signal(bytes(queue)?, bytes(id)?))
            }
            _ => None,
        }
    }

    /// The path of a job.
    pub fn path(queue: &[u8], id: &[u8]) -> String {
        let [queue, id] = [queue, id].map(|it| percent_encode(it, NON_ALPHANUMERIC));
        format!("/queues/{queue}/jobs/{id}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let job = |queue: &[u8], id: &[u8]| Some(Place::Job(queue.into(), id.into()));
        for (path, place) in [
            ("/queues/a/jobs", Some(Place::Jobs(b"a".into()))),
            ("/queues/a/jobs/b", job(b"a", b"b")),
            ("/queues/a/jobs/x%2Fy%00%ff", job(b"a", b"x/y\0\xff")),
            (
                "/queues/a/jobs/b/signal",
                Some(Place::Signal(b"a".into(), b"b".into())),
            ),
            ("/openapi.json", Some(Place::OpenApi)),
            ("/queues//jobs", None),
            ("/queues/a/jobs/", None),
            ("/queues/a/../jobs/b", None),
            ("queues/a/jobs", None),
            ("/", None),
        ] {
            assert_eq!(Place::of(path), place, "{path}");
        }
        let path = Place::path(b"a b", b"x/y\0\xff");
        assert_eq!(Place::of(&path), job(b"a b", b"x/y\0\xff"));
    }
}
