//! CLUSTER NODES: which nodes are masters, and which of them was asked.

/// The cluster as one node sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The address of the node that was asked, as the cluster has it.
    pub me: String,
    pub i_am_master: bool,
    /// Addresses of all masters. One that has failed counts while it has slots, as nobody has its queues.
    pub masters: Vec<String>,
}

impl Topology {
    /// `asked` is the host by which the node was reached: a node does not always know its own.
    pub fn parse(text: &str, asked: &str) -> Topology {
        let mut topology = Topology::default();
        for line in text.lines() {
            let mut words = line.split(' ').skip(1);
            let (Some(address), Some(flags)) = (words.next(), words.next()) else {
                continue;
            };
            let has = |flag: &str| flags.split(',').any(|it| it == flag);
            let Some(address) = plain(address, asked) else {
                continue;
            };
            if has("myself") {
                topology.me = address.clone();
                topology.i_am_master = has("master");
            }
            let mut slots = words.skip(5).filter(|it| !it.starts_with('['));
            let counts = !has("fail") || slots.next().is_some();
            if has("master") && counts && !has("noaddr") && !has("handshake") {
                topology.masters.push(address);
            }
        }
        topology
    }
}

/// `127.0.0.1:7000@17000,name` -> `127.0.0.1:7000`
fn plain(address: &str, asked: &str) -> Option<String> {
    let address = address.split(['@', ',']).next()?;
    let (host, port) = address.rsplit_once(':')?;
    let host = if host.is_empty() { asked } else { host };
    Some(format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_are_found() {
        let text = "\
07c3 127.0.0.1:30004@31004,hostname4 slave e7d1 0 1426238317239 4 connected
67ed 127.0.0.1:30002@31002 master - 0 1426238316232 2 connected 5461-10922
292f 127.0.0.1:30003@31003,,shard-id=1 master,fail? - 0 1426238318243 3 connected 10923-16383
6ec2 127.0.0.1:30005@31005 master,fail - 0 1426238316232 5 disconnected
6ec3 127.0.0.1:30006@31006 master,fail - 0 1426238316232 5 disconnected 16383
e7d1 :30001@31001 myself,master - 0 0 1 connected 0-5460
824f :0@0 master,noaddr - 0 0 1 disconnected
";
        let topology = Topology::parse(text, "10.0.0.9");
        assert_eq!(
            (topology.me.as_str(), topology.i_am_master),
            ("10.0.0.9:30001", true)
        );
        assert_eq!(
            topology.masters,
            [
                "127.0.0.1:30002",
                "127.0.0.1:30003",
                "127.0.0.1:30006",
                "10.0.0.9:30001"
            ]
        );
        let replica = Topology::parse("a 1.2.3.4:1@2 myself,slave b 0 0 1 connected\n", "h");
        assert!(!replica.i_am_master && replica.masters.is_empty());
    }
}
