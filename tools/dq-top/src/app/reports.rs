//! How the monitor handles a node's report.

use super::App;
use dq_watch::fleet::Out;
use dq_watch::model::column::Tone;
use dq_watch::model::QueueKey;
use dq_watch::read::acts::Act;
use dq_watch::read::{News, Report, Request};
use dq_watch::text::escape;

impl App {
    pub fn hear(&mut self, report: Report) {
        match self.servers.hear(report) {
            Some(News::Detail { detail, found }) => {
                let rows = self.job_rows();
                if let Some(view) = self.queue_view_mut() {
                    if view.detail(rows).as_ref() == Some(&detail) {
                        view.take(&detail, found);
                    }
                }
            }
            Some(News::Acted {
                key,
                act,
                said,
                moved,
            }) => self.hear_acted(key, act, said, moved),
            Some(News::Dying { wanted, dying }) => {
                if let Some(prompt) = &mut self.prompt {
                    prompt.hear_dying(&wanted, dying);
                }
            }
            _ => {}
        }
        self.settle();
    }

    fn hear_acted(
        &mut self,
        key: QueueKey,
        act: Act,
        said: Result<String, String>,
        moved: Option<String>,
    ) {
        let elsewhere = moved.and_then(|address| self.servers.node_at(&address));
        let again = self.sent_on.as_ref() == Some(&(key.clone(), act.clone()));
        if let (Some(node), false) = (elsewhere, again) {
            self.servers.adopt(key.clone(), node.clone());
            self.sent_on = Some((key.clone(), act.clone()));
            let request = Request::Act { key, act };
            self.servers.outbox.push(Out::To(node, request));
            return;
        }
        self.sent_on = None;
        let name = escape::name(&key.name);
        match said {
            Ok(done) => self.say(format!("{name}: {done}"), Tone::Good),
            Err(error) => self.say(
                format!("{name}: {}", escape::line(error.as_bytes())),
                Tone::Bad,
            ),
        }
    }
}
