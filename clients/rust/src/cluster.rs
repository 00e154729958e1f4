//! Which node of a cluster has a key.

use crate::connect::{connect, silent};
use crate::values;
use redis::{cmd, Client, ConnectionAddr, ConnectionInfo, RedisError, Value};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const ANSWER: Duration = Duration::from_secs(5);

/// What is known of a cluster.
#[derive(Default)]
pub(crate) struct Map {
    nodes: Vec<ConnectionInfo>,
    slots: Vec<(u16, u16, ConnectionInfo)>,
}

/// Where a command is to be sent again.
pub(crate) enum Redirected {
    Not,
    Moved,
    Ask(Box<ConnectionInfo>),
}

pub(crate) fn redirected(
    seeds: &[ConnectionInfo],
    map: &Mutex<Map>,
    replies: &[Value],
) -> Redirected {
    let Some(text) = replies.iter().find_map(|reply| match reply {
        Value::ServerError(error) => Some(values::server_error(error)),
        _ => None,
    }) else {
        return Redirected::Not;
    };
    let mut words = text.split(' ');
    match (words.next(), words.nth(1)) {
        (Some("MOVED" | "CLUSTERDOWN" | "TRYAGAIN"), _) => {
            map.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .slots
                .clear();
            Redirected::Moved
        }
        (Some("ASK"), Some(address)) => match address.rsplit_once(':') {
            Some((host, port)) => Redirected::Ask(Box::new(at(
                &seeds[0],
                host,
                port.parse().unwrap_or_default(),
            ))),
            None => Redirected::Moved,
        },
        _ => Redirected::Not,
    }
}

/// The node that has a slot; `anew`: ask the cluster again.
pub(crate) async fn node_of(
    seeds: &[ConnectionInfo],
    map: &Mutex<Map>,
    slot: u16,
    anew: bool,
) -> Result<ConnectionInfo, RedisError> {
    let known = || map.lock().unwrap_or_else(PoisonError::into_inner);
    let find = |slots: &[(u16, u16, ConnectionInfo)]| {
        let found = slots
            .iter()
            .find(|(first, last, _)| (*first..=*last).contains(&slot));
        found.map(|(_, _, node)| node.clone())
    };
    if let (false, Some(node)) = (anew, find(&known().slots)) {
        return Ok(node);
    }
    let mut said: RedisError = (
        redis::ErrorKind::Client,
        "no node of the cluster has the slot",
    )
        .into();
    let nodes = known().nodes.clone();
    for node in nodes.iter().chain(seeds) {
        match slots(node, &seeds[0]).await {
            Ok(slots) => {
                let mut map = known();
                map.nodes = slots.iter().map(|(_, _, node)| node.clone()).collect();
                map.nodes.dedup_by_key(|node| node.addr().to_string());
                map.slots = slots;
                if let Some(node) = find(&map.slots) {
                    return Ok(node);
                }
            }
            Err(error) => said = error,
        }
    }
    Err(said)
}

async fn slots(
    node: &ConnectionInfo,
    seed: &ConnectionInfo,
) -> Result<Vec<(u16, u16, ConnectionInfo)>, RedisError> {
    let node = at_addr(seed, node.addr().clone());
    let mut connection = connect(&Client::open(node.clone())?).await?;
    let mut ask = cmd("CLUSTER");
    ask.arg("SLOTS");
    let sent = connection.send_packed_command(&ask);
    let reply = tokio::time::timeout(ANSWER, sent)
        .await
        .map_err(|_| silent())??;
    let mut found = Vec::new();
    for range in values::list(reply) {
        let mut range = values::list(range).into_iter();
        let (Some(first), Some(last), Some(master)) = (range.next(), range.next(), range.next())
        else {
            continue;
        };
        let mut master = values::list(master).into_iter();
        let host = master
            .next()
            .and_then(values::text)
            .filter(|host| !host.is_empty());
        let port = master.next().map_or(0, |port| values::int(&port));
        let host = host.or_else(|| host_of(node.addr())).unwrap_or_default();
        found.push((
            values::int(&first) as u16,
            values::int(&last) as u16,
            at(seed, &host, port as u16),
        ));
    }
    Ok(found)
}

fn host_of(addr: &ConnectionAddr) -> Option<String> {
    match addr {
        ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => Some(host.clone()),
        _ => None,
    }
}

/// Another node, with the settings of `like`.
fn at(like: &ConnectionInfo, host: &str, port: u16) -> ConnectionInfo {
    let addr = match like.addr().clone() {
        ConnectionAddr::TcpTls {
            insecure,
            tls_params,
            ..
        } => ConnectionAddr::TcpTls {
            host: host.to_owned(),
            port,
            insecure,
            tls_params,
        },
        _ => ConnectionAddr::Tcp(host.to_owned(), port),
    };
    at_addr(like, addr)
}

fn at_addr(like: &ConnectionInfo, addr: ConnectionAddr) -> ConnectionInfo {
    like.clone().set_addr(addr)
}
