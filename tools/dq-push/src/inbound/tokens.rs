//! Who may send requests, and what each of them may do.

use std::sync::Mutex;
use std::time::Instant;

use axum::http::StatusCode;
use dq_serve::locked::locked;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::refusal::Refusal;
use super::said::Said;

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    Add,
    Get,
    Cancel,
    Signal,
}

/// What one caller may do.
#[derive(Default)]
pub struct Token {
    pub name: String,
    /// SHA-256 of the token, which is random and long: it needs no slower one.
    pub hash: [u8; 32],
    /// Names, and beginnings of names with `*` behind them.
    pub queues: Vec<String>,
    pub verbs: Vec<Verb>,
    /// Ids begin with it.
    pub prefix: Vec<u8>,
    /// Texts that all its jobs have, by the option's name.
    pub fixed: Vec<(&'static str, String)>,
    /// The least and the most that it may say.
    pub bounds: Vec<(Said, (i64, i64))>,
    pub rate: Option<Rate>,
}

/// All tokens. None: there are none, and everybody may do everything.
pub struct Tokens(Option<Vec<Token>>, Token);

impl Tokens {
    /// `is_open`: without a token everybody who reaches the program may do everything.
    pub fn new(tokens: Vec<Token>, is_open: bool) -> Tokens {
        let everybody = Token {
            queues: vec!["*".to_owned()],
            verbs: vec![Verb::Add, Verb::Get, Verb::Cancel, Verb::Signal],
            ..Token::default()
        };
        Tokens((!is_open).then_some(tokens), everybody)
    }

    pub fn are_needed(&self) -> bool {
        self.0.is_some()
    }

    /// Whose token this is. All are compared, each in the same time.
    pub fn find(&self, said: Option<&str>) -> Option<&Token> {
        let Some(tokens) = &self.0 else {
            return Some(&self.1);
        };
        let hash = Sha256::digest(said?);
        let is_it = |found, token| match bool::from(Token::hash(token).ct_eq(&hash)) {
            true => Some(token),
            false => found,
        };
        tokens.iter().fold(None, is_it)
    }
}

impl Token {
    fn hash(&self) -> &[u8] {
        &self.hash
    }

    /// A queue that it does not have is as one that does not exist.
    pub fn may(&self, verb: Verb, queue: &[u8]) -> Result<(), Refusal> {
        let is_it = |name: &String| match name.strip_suffix('*') {
            Some(begin) => queue.starts_with(begin.as_bytes()),
            None => queue == name.as_bytes(),
        };
        if !self.queues.iter().any(is_it) {
            return Err(Refusal::unknown("queue").because("queue"));
        }
        match self.verbs.contains(&verb) {
            true => Ok(()),
            false => Err(forbidden("this token may not do that").because("verb")),
        }
    }

    pub fn has(&self, id: &[u8]) -> Result<(), Refusal> {
        match id.starts_with(&self.prefix) {
            true => Ok(()),
            false => Err(Refusal::unknown("job").because("prefix")),
        }
    }

    /// Counts requests, or jobs that are added.
    pub fn spend(&self, count: usize) -> Result<(), Refusal> {
        let wait = self
            .rate
            .as_ref()
            .and_then(|rate| rate.spend(count, Instant::now()));
        wait.map_or(Ok(()), |seconds| {
            let status = StatusCode::TOO_MANY_REQUESTS;
            let refusal = Refusal::later(status, "this token's rate is used up", seconds);
            Err(refusal.because("rate"))
        })
    }
}

pub fn forbidden(error: &str) -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, error)
}

/// So many a second, and as many at once.
pub struct Rate {
    per_second: f64,
    state: Mutex<(f64, Instant)>,
}

impl Rate {
    pub fn new(per_second: f64) -> Rate {
        Rate {
            per_second,
            state: Mutex::new((per_second.max(1.0), Instant::now())),
        }
    }

    /// None: spent. Else in how many seconds there will be enough. More than fit at once are let through when all are
    /// there, and leave a debt.
    fn spend(&self, count: usize, now: Instant) -> Option<u64> {
        let most = self.per_second.max(1.0);
        let mut state = locked(&self.state);
        let (left, at) = *state;
        let left = most.min(left + now.duration_since(at).as_secs_f64() * self.per_second);
        let needed = most.min(count as f64);
        let is_enough = left >= needed;
        *state = (if is_enough { left - count as f64 } else { left }, now);
        (!is_enough).then(|| ((needed - left) / self.per_second).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn token(name: &str, said: &str) -> Token {
        Token {
            name: name.to_owned(),
            hash: Sha256::digest(said).into(),
            queues: vec!["mails".to_owned(), "shop.*".to_owned()],
            verbs: vec![Verb::Add],
            prefix: b"a:".to_vec(),
            ..Token::default()
        }
    }

    #[test]
    fn a_token_is_found_by_all_of_it() {
        let tokens = Tokens::new(vec![token("a", "dq_1"), token("b", "dq_2")], false);
        assert_eq!(tokens.find(Some("dq_2")).map(|it| &*it.name), Some("b"));
        for wrong in [None, Some(""), Some("dq_"), Some("dq_22"), Some("dq_3")] {
            assert!(tokens.find(wrong).is_none(), "{wrong:?}");
        }
        assert!(Tokens::new(Vec::new(), false).find(Some("")).is_none());
        assert!(Tokens::new(Vec::new(), true).find(None).is_some());
    }

    #[test]
    fn what_it_has_and_what_it_does_not() {
        let token = token("a", "dq_1");
        for (queue, verb, status) in [
            ("mails", Verb::Add, None),
            ("shop.orders", Verb::Add, None),
            ("shop", Verb::Add, Some(404)),
            ("mails2", Verb::Add, Some(404)),
            ("mails", Verb::Get, Some(403)),
        ] {
            let said = token.may(verb, queue.as_bytes());
            assert_eq!(said.err().map(|it| it.status.as_u16()), status, "{queue}");
        }
        assert!(token.has(b"a:1").is_ok() && token.has(b"b:a:").is_err());
    }

    #[test]
    fn a_rate_is_used_up_and_comes_back() {
        let (rate, now) = (Rate::new(10.0), Instant::now());
        assert_eq!((rate.spend(10, now), rate.spend(1, now)), (None, Some(1)));
        let later = now + Duration::from_millis(100);
        assert_eq!(rate.spend(1, later), None);
        let later = now + Duration::from_secs(9);
        assert_eq!(rate.spend(40, later), None, "more than fit at once");
        assert_eq!(rate.spend(1, later), Some(4));
    }
}
