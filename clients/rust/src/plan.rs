//! What a worker is made of.

use crate::core::{Member, Settings};
use crate::health::{Health, Probe};
use crate::queue::Queue;
use crate::ruled::Ruled;
use crate::run::Work;
use crate::server::Server;
use crate::source::Source;
use std::sync::Arc;
use tokio::runtime::Handle;

/// A server, its name among places, and the keys that one `DQ.BPOP` there waits for.
pub(crate) type Place = (Server, String, Vec<Member>);

/// For each place, the queue of each of its keys.
pub(crate) fn sources(queues: &[(Queue, f64)], places: &[Place]) -> Vec<Vec<Arc<Source>>> {
    let of = |place: &str, key: &Arc<[u8]>| {
        let is_its = |it: &&Queue| it.keys().contains(key) && it.server().place_of(key) == place;
        let mut all = queues.iter().map(|(queue, _)| queue);
        Arc::new(all.find(is_its).unwrap_or(&queues[0].0).source())
    };
    let of_place = |(_, place, members): &Place| {
        let sources = members.iter().map(|member| of(place, &member.key));
        sources.collect()
    };
    places.iter().map(of_place).collect()
}

pub(crate) struct Plan {
    pub settings: Settings,
    /// For each place, the queue of each member.
    pub sources: Vec<Vec<Arc<Source>>>,
    pub places: Vec<Place>,
    pub is_weighted: bool,
    pub works: Vec<Arc<Work>>,
    pub health: Health,
    pub probe: Option<Probe>,
    pub ruled: Option<Ruled>,
    /// Where handlers run.
    pub handlers: Handle,
}
