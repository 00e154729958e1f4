//! Browsers that have signed in with a password, until they sign out, the board ends, or the password is removed.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::http::{header, HeaderMap};
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine;

use crate::core::access::{Access, Key};
use dq_serve::locked::locked;

const LASTS: Duration = Duration::from_secs(30 * 86_400);
/// Sessions at most; a new one replaces the oldest.
const MOST: usize = 1000;

pub struct Sessions {
    /// The cookie's name. Boards of one host need different ones, as browsers keep cookies of all ports together.
    cookie: String,
    path: String,
    open: Mutex<HashMap<String, (Key, Instant)>>,
}

impl Sessions {
    /// `board` tells this board apart from others of the same host.
    pub fn new(prefix: &str, board: &str) -> Sessions {
        let mut hasher = DefaultHasher::new();
        board.hash(&mut hasher);
        Sessions {
            cookie: format!("dq-{:08x}", hasher.finish() as u32),
            path: format!("{prefix}/"),
            open: Mutex::default(),
        }
    }

    /// Begins a session; returns the cookie to set.
    pub fn begin(&self, key: Key, encrypted: bool) -> Result<String, String> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| format!("no randomness: {error}"))?;
        let session = URL_SAFE_NO_PAD.encode(random);
        let mut open = locked(&self.open);
        open.retain(|_, (_, since)| since.elapsed() < LASTS);
        if open.len() >= MOST {
            let oldest = open.iter().min_by_key(|(_, (_, since))| *since);
            let oldest = oldest.map(|(session, _)| session.clone());
            oldest.and_then(|oldest| open.remove(&oldest));
        }
        open.insert(session.clone(), (key, Instant::now()));
        Ok(self.set(&session, LASTS.as_secs(), encrypted))
    }

    /// Ends a session; returns the cookie that removes the browser's.
    pub fn end(&self, headers: &HeaderMap) -> String {
        let mut open = locked(&self.open);
        for session in self.said(headers) {
            open.remove(session);
        }
        self.set("", 0, false)
    }

    fn set(&self, session: &str, seconds: u64, encrypted: bool) -> String {
        let (cookie, path) = (&self.cookie, &self.path);
        let secure = if encrypted { "; Secure" } else { "" };
        format!(
            "{cookie}={session}; Path={path}; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"
        )
    }

    /// The key by which this browser signed in.
    pub fn key(&self, headers: &HeaderMap) -> Option<Key> {
        let open = locked(&self.open);
        let mut said = self.said(headers).filter_map(|session| open.get(session));
        let (key, _) = said.find(|(_, since)| since.elapsed() < LASTS)?;
        Some(key.clone())
    }

    /// The values of all cookies of that name: another site of the same domain may have set one, too.
    fn said<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let cookies = headers.get_all(header::COOKIE).iter();
        cookies
            .filter_map(|cookies| cookies.to_str().ok())
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .filter(|(name, _)| *name == self.cookie)
            .map(|(_, session)| session)
    }

    /// Ends sessions whose password is no longer valid; the others get its role.
    pub fn keep(&self, access: &Access) {
        locked(&self.open).retain(|_, (key, _)| {
            let now = access.password(&key.secret).cloned();
            now.map(|now| *key = now).is_some()
        });
    }
}
