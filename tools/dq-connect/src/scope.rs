//! Which databases and queues are shown, and how often they are read.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use clap::Args;

#[derive(Args, Clone, Default, PartialEq)]
#[command(next_help_heading = "Scope")]
pub struct ScopeArgs {
    /// Databases to show, all: those that have keys; others can be neither seen nor changed [default: the URL's, or 0]
    #[arg(short = 'n', value_name = "DB,DB...|all", value_parser = dbs)]
    dbs: Option<Dbs>,
    /// All masters of the cluster; automatic if the server is part of one
    #[arg(long, conflicts_with = "no_cluster")]
    cluster: bool,
    /// Only this node of the cluster
    #[arg(long)]
    no_cluster: bool,
    /// Show only this queue, without searching; may be repeated; others can be neither seen nor changed
    #[arg(long = "queue", value_name = "NAME", allow_hyphen_values = true)]
    queues: Vec<OsString>,
}

impl ScopeArgs {
    pub fn scope(&self, db: u32) -> Result<Scope, String> {
        let names = self.queues.iter().cloned().map(OsString::into_vec);
        let scope = Scope {
            dbs: self.dbs.clone().unwrap_or(Dbs::These(vec![db])),
            cluster: match (self.cluster, self.no_cluster) {
                (false, false) => None,
                (cluster, _) => Some(cluster),
            },
            queues: names.collect(),
            ..Scope::default()
        };
        match scope.dbs == Dbs::All && !scope.queues.is_empty() {
            true => Err("--queue needs its database: -n with numbers".to_owned()),
            false => Ok(scope),
        }
    }
}

/// Which databases are searched for queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dbs {
    These(Vec<u32>),
    /// Those that have keys.
    All,
}

/// What is read, and how often; the same for all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pub dbs: Dbs,
    pub interval: Duration,
    /// None: as the server says.
    pub cluster: Option<bool>,
    /// If not empty, only these are read, and nothing is searched for.
    pub queues: Vec<Vec<u8>>,
}

impl Scope {
    /// Whether that queue is one of those that are read.
    pub fn has(&self, db: u32, queue: &Vec<u8>) -> bool {
        let of_db = match &self.dbs {
            Dbs::All => true,
            Dbs::These(dbs) => dbs.contains(&db),
        };
        of_db && (self.queues.is_empty() || self.queues.contains(queue))
    }

    /// Whether one of these databases may have queues that are not read.
    pub fn leaves_out(&self, mut dbs: impl Iterator<Item = u32>) -> bool {
        let is_left_out = |db| match &self.dbs {
            Dbs::All => false,
            Dbs::These(these) => !these.contains(&db),
        };
        !self.queues.is_empty() || dbs.any(is_left_out)
    }
}

impl Default for Scope {
    fn default() -> Scope {
        Scope {
            dbs: Dbs::These(vec![0]),
            interval: Duration::from_secs(1),
            cluster: None,
            queues: Vec::new(),
        }
    }
}

fn dbs(text: &str) -> Result<Dbs, String> {
    if text == "all" {
        return Ok(Dbs::All);
    }
    let numbers = text.split(',').map(|number| number.parse::<u32>());
    let numbers: Result<Vec<u32>, _> = numbers.collect();
    let mut numbers = numbers.map_err(|_| "not numbers of databases, and not all".to_owned())?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(Dbs::These(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_has_its_databases_and_queues() {
        let of = |dbs, queues: &[&str]| Scope {
            dbs,
            queues: queues.iter().map(|name| name.as_bytes().to_vec()).collect(),
            ..Scope::default()
        };
        let has = |scope: &Scope, db, name: &str| scope.has(db, &name.as_bytes().to_vec());
        let all = of(Dbs::All, &[]);
        assert!(has(&all, 7, "q"));
        let two = of(Dbs::These(vec![0, 3]), &[]);
        assert!(has(&two, 3, "q") && !has(&two, 1, "q"));
        let one = of(Dbs::These(vec![0]), &["orders"]);
        assert!(has(&one, 0, "orders"));
        assert!(!has(&one, 0, "order") && !has(&one, 1, "orders"));
    }

    #[test]
    fn what_is_shown_is_said() {
        let scope = |line: &str| {
            let words: ScopeArgs = crate::arguments::parse(line.split_whitespace())?;
            words.scope(5)
        };
        assert_eq!(scope("").unwrap().dbs, Dbs::These(vec![5]));
        assert_eq!(scope("-n 3,1,3").unwrap().dbs, Dbs::These(vec![1, 3]));
        assert_eq!(scope("-n all --no-cluster").unwrap().cluster, Some(false));
        let refused = scope("-n all --queue a").unwrap_err();
        assert!(refused.contains("-n with numbers"), "{refused}");
        let refused = scope("-n x").unwrap_err();
        assert!(refused.starts_with("-n x: not numbers"), "{refused}");
    }
}
