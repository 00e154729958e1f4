//! Sentinel: three that watch over a master with two replicas, and a master that dies.

use crate::router::Guides;
use crate::scene::{now_ms, Delivery, Lines, Scene};
use crate::support::{wait_until, Builder, Raw, Reply, Server, PATIENCE};
use crate::traffic::Traffic;

const NAME: &str = "dq";

pub struct Watched {
    /// The first one is the master.
    pub servers: Vec<Server>,
    sentinels: Vec<Server>,
}

impl Watched {
    fn start() -> Watched {
        Watched::start_with(&Server::builder())
    }

    pub fn start_with(builder: &Builder) -> Watched {
        let servers: Vec<Server> = (0..3).map(|_| builder.clone().start()).collect();
        for replica in &servers[1..] {
            replica.replica_of(&servers[0]);
        }
        let monitor = format!("monitor {NAME} 127.0.0.1 {} 2", servers[0].port());
        let sentinel = Server::plain()
            .sentinel()
            .config("sentinel", monitor)
            .config("sentinel", format!("down-after-milliseconds {NAME} 2000"))
            .config("sentinel", format!("failover-timeout {NAME} 6000"));
        let sentinels = (0..3).map(|_| sentinel.clone().start()).collect();
        let watched = Watched { servers, sentinels };
        for sentinel in &watched.sentinels {
            wait_until("all know each other and the replicas", PATIENCE, || {
                let known = sentinel.raw().words(&format!("SENTINEL MASTER {NAME}"));
                let says =
                    |field: &str, value: &str| known.windows(2).any(|pair| pair == [field, value]);
                says("num-slaves", "2") && says("num-other-sentinels", "2")
            });
        }
        watched
    }

    fn guides(&self) -> Guides {
        Guides::Sentinels(self.sentinels.iter().map(Server::port).collect(), NAME)
    }

    /// The master's port, by the sentinels' word.
    pub fn port(&self) -> String {
        self.sentinels[0]
            .raw()
            .words(&format!("SENTINEL GET-MASTER-ADDR-BY-NAME {NAME}"))
            .swap_remove(1)
    }

    /// The index of the master.
    fn master(&self) -> usize {
        let port = self.port();
        let is_it = |server: &Server| server.port().to_string() == port;
        self.servers.iter().position(is_it).expect("one of ours")
    }
}

#[test]
fn a_master_dies_under_traffic() {
    let mut watched = Watched::start();
    let mut client = watched.servers[0].raw();
    client.run("DQ.ADD leased a x");
    client.run("DQ.ADD leased b x");
    client.run("DQ.POP leased TTR 600000 ID b");
    let guides = watched.guides();
    let queues: Vec<String> = (0..3).map(|number| format!("q{number}")).collect();
    let traffic = Traffic {
        guides: &guides,
        queues: &queues,
        wait: true,
    };
    let mut crash = 0;
    let mut left: Option<(u64, Delivery, Raw)> = None;
    let seen = traffic.during(|| {
        // For the new master: on a busy machine, too, the old one is gone by then.
        let due = now_ms() + 6000;
        client.begin("DQ.POP leased TTR 6000");
        let lease = client.delivery();
        client.run(&format!("DQ.ADD late a x AT {due}"));
        client.says("WAIT 2 5000", "2");
        left = Some((due, lease, watched.servers[0].waiting("DQ.BPOP late 0")));
        crash = now_ms();
        watched.servers[0].kill();
        wait_until("another one is master", PATIENCE, || watched.master() != 0);
    });
    seen.assert_sound(Some(crash));
    let (due, lease, mut hung_up) = left.expect("a master that died");
    hung_up.read_to_end();
    // Dues and leases go on where they were; a client that waits over there gets them.
    let master = &watched.servers[watched.master()];
    let mut there = master.raw();
    there.begin("DQ.BPOP late leased 0");
    let first = there.delivery();
    there.begin("DQ.BPOP late leased 0");
    let second = there.delivery();
    let mut both = [first, second];
    both.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(both.clone().map(|job| job.key), ["late", "leased"]);
    assert_eq!(both[0].attempts, 1);
    assert_eq!((both[1].attempts, &both[1].id), (2, &lease.id));
    assert!(now_ms() >= due && now_ms() >= lease.deadline);
    assert_eq!(there.run("DQ.LEN leased RESERVED"), Reply::Integer(2));
    // The old one is brought back as a replica of the new one.
    let master = watched.master();
    watched.servers[0].restart();
    wait_until("it follows", PATIENCE, || is_replica(&watched.servers[0]));
    let followers: Vec<&Server> = (0..3)
        .filter(|&n| n != master)
        .map(|n| &watched.servers[n])
        .collect();
    followers
        .iter()
        .for_each(|follower| follower.wait_for_link());
    watched.servers[master].assert_followed_by(&followers);
}

/// Sentinel hangs up on the clients of a server that it makes a replica: also on who asks for that.
pub fn is_replica(server: &Server) -> bool {
    let role = server.connect().call_raw(&redis::cmd("ROLE"));
    let of_replica = redis::Value::BulkString(b"slave".to_vec());
    matches!(role, Ok(redis::Value::Array(told)) if told.first() == Some(&of_replica))
}
