//! Who may sign in, and what they may do.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::Deserialize;
use subtle::ConstantTimeEq;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    #[default]
    Look,
    Operate,
}

/// A password or a token, with a name for the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub name: String,
    pub secret: String,
    pub role: Role,
}

/// Users whom a proxy has signed in, by the headers that it sets.
#[derive(Clone, Debug)]
pub struct Users {
    pub user_header: String,
    pub groups_header: Option<String>,
    /// Names, `group:NAME`, or `*`.
    pub look: Vec<String>,
    pub operate: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Access {
    pub passwords: Vec<Key>,
    pub tokens: Vec<Key>,
    pub users: Option<Users>,
    pub proxies: Vec<IpNet>,
    /// The role of visitors if no key is needed because there are none.
    pub open: Role,
}

/// A visitor who was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visitor {
    /// The server whose board is asked, where there are several.
    pub server: Option<String>,
    pub address: IpAddr,
    pub role: Role,
    pub by: By,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    Nothing,
    Password(String),
    Token(String),
    User(String),
}

impl Visitor {
    /// The name that pages show, and whether the visitor can sign out.
    pub fn shown(&self) -> (Option<&str>, bool) {
        match &self.by {
            By::Nothing | By::Token(_) => (None, false),
            By::User(name) => (Some(name), false),
            By::Password(name) => (Some(name), true),
        }
    }
}

impl Users {
    /// None: the user is in neither list.
    pub fn role(&self, user: &str, groups: &str) -> Option<Role> {
        let groups: Vec<&str> = groups.split(',').map(str::trim).collect();
        let has = |list: &[String]| {
            list.iter().any(|it| match it.strip_prefix("group:") {
                Some(group) => groups.contains(&group),
                None => it == "*" || it == user,
            })
        };
        match (has(&self.operate), has(&self.look)) {
            (true, _) => Some(Role::Operate),
            (false, true) => Some(Role::Look),
            (false, false) => None,
        }
    }
}

impl Access {
    /// Whether everybody who reaches the board is let in.
    pub fn is_open(&self) -> bool {
        self.passwords.is_empty() && self.tokens.is_empty() && self.users.is_none()
    }

    pub fn may_anybody_act(&self) -> bool {
        let may = |key: &Key| key.role == Role::Operate;
        let users = self.users.as_ref();
        (self.is_open() && self.open == Role::Operate)
            || self.passwords.iter().chain(&self.tokens).any(may)
            || users.is_some_and(|users| !users.operate.is_empty())
    }

    pub fn password(&self, said: &str) -> Option<&Key> {
        find(&self.passwords, said)
    }

    pub fn token(&self, said: &str) -> Option<&Key> {
        find(&self.tokens, said)
    }

    pub fn is_proxy(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.proxies.iter().any(|net| net.contains(&address))
    }

    /// The address a proxy forwards for: the last one that is not a proxy of ours. `forwarded` is X-Forwarded-For.
    pub fn client(&self, peer: IpAddr, forwarded: &str) -> IpAddr {
        let mut client = peer.to_canonical();
        for hop in forwarded.rsplit(',') {
            if !self.is_proxy(client) {
                break;
            }
            match address(hop.trim()) {
                Some(before) => client = before,
                None => break,
            }
        }
        client
    }
}

/// An address, or a network such as `10.0.0.0/8`.
pub fn network(text: &str) -> Result<IpNet, String> {
    let address = text.parse::<IpAddr>().map(IpNet::from);
    let net = text.parse().or(address);
    net.map_err(|_| "not an address, nor a network such as 10.0.0.0/8".to_owned())
}

/// Reads an address with or without a port and brackets.
fn address(text: &str) -> Option<IpAddr> {
    let plain = text.trim_start_matches('[').trim_end_matches(']');
    let of_socket = || text.parse::<std::net::SocketAddr>().ok().map(|it| it.ip());
    let address = plain.parse().ok().or_else(of_socket)?;
    Some(IpAddr::to_canonical(&address))
}

/// All keys are compared, so that the time does not reveal which of them is close.
fn find<'a>(keys: &'a [Key], said: &str) -> Option<&'a Key> {
    let fits = |found, key: &'a Key| match key.secret.as_bytes().ct_eq(said.as_bytes()).into() {
        true => Some(key),
        false => found,
    };
    keys.iter().fold(None, fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        let key = |name: &str, secret: &str| Key {
            name: name.to_owned(),
            secret: secret.to_owned(),
            role: Role::Look,
        };
        Access {
            tokens: vec![key("a", "secret-1"), key("b", "secret-2")],
            proxies: vec!["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()],
            ..Access::default()
        }
    }

    #[test]
    fn a_secret_is_found_by_all_of_it() {
        let access = access();
        assert_eq!(access.token("secret-2").unwrap().name, "b");
        for wrong in ["", "secret", "secret-3", "secret-22"] {
            assert_eq!(access.token(wrong), None);
        }
        assert_eq!(access.password("secret-1"), None);
        assert!(!access.is_open() && Access::default().is_open());
    }

    #[test]
    fn only_proxies_of_ours_speak_for_others() {
        let access = access();
        let client = |peer: &str, forwarded: &str| {
            let peer = peer.parse().unwrap();
            access.client(peer, forwarded).to_string()
        };
        assert_eq!(client("10.1.1.1", "1.2.3.4"), "1.2.3.4");
        assert_eq!(client("10.1.1.1", "6.6.6.6, 1.2.3.4, 10.2.2.2"), "1.2.3.4");
        assert_eq!(client("8.8.8.8", "1.2.3.4"), "8.8.8.8");
        assert_eq!(client("::1", "[2001:db8::1]:443"), "2001:db8::1");
        assert_eq!(client("::ffff:10.1.1.1", "1.2.3.4:55"), "1.2.3.4");
        for nothing in ["", "nonsense", "1.2.3.4, nonsense"] {
            assert_eq!(client("10.1.1.1", nothing), "10.1.1.1");
        }
    }

    #[test]
    fn users_have_the_larger_of_their_roles() {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect();
        let mut users = Users {
            user_header: String::new(),
            groups_header: None,
            look: list("*"),
            operate: list("ann group:ops"),
        };
        assert_eq!(users.role("ann", ""), Some(Role::Operate));
        assert_eq!(users.role("bob", "dev, ops"), Some(Role::Operate));
        assert_eq!(users.role("bob", "dev"), Some(Role::Look));
        assert_eq!(users.role("group:ops", ""), Some(Role::Look));
        users.look = list("bob");
        assert_eq!(users.role("eve", "dev"), None);
    }
}
