//! What became of requests, for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;

use dq_serve::locked::locked;

#[derive(Default)]
pub struct Counts {
    /// By what was asked for, and the status.
    answers: Mutex<BTreeMap<(&'static str, u16), u64>>,
    /// By the reason.
    refusals: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counts {
    pub fn answered(&self, asked: &'static str, status: u16) {
        *locked(&self.answers).entry((asked, status)).or_default() += 1;
    }

    pub fn refused(&self, why: &'static str) {
        *locked(&self.refusals).entry(why).or_default() += 1;
    }

    pub fn text(&self, is_up: bool) -> String {
        let mut text = String::from(
            "# HELP dq_http_requests_total Requests that came in, by what they asked for and the answer's status.\n\
             # TYPE dq_http_requests_total counter\n",
        );
        for ((asked, status), count) in &*locked(&self.answers) {
            let _ = writeln!(
                text,
                "dq_http_requests_total{{asked=\"{asked}\",status=\"{status}\"}} {count}"
            );
        }
        text += "# HELP dq_http_refused_total Requests that were refused before the server was asked, by reason.\n\
                 # TYPE dq_http_refused_total counter\n";
        for (why, count) in &*locked(&self.refusals) {
            let _ = writeln!(text, "dq_http_refused_total{{why=\"{why}\"}} {count}");
        }
        text += "# HELP dq_http_up 1 while the server answers requests that came in.\n# TYPE dq_http_up gauge\n";
        let _ = writeln!(text, "dq_http_up {}", u8::from(is_up));
        text
    }
}
