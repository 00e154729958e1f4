//! What one group may have of its own: as the server says it, and how an operator changes it.

use redis::{Cmd, Value};

use super::reply;
use crate::text::units;

/// DQ.GROUPGET. None: it has none of its own, so that the queue's holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub weight: Option<u64>,
    pub max: Option<u64>,
    pub rate: Option<(u64, u64)>,
    pub maxlen: Option<u64>,
    /// As in DQ.STATS.
    pub paused: i64,
    /// What the window of its rate holds.
    pub rate_used: u64,
}

pub fn get(key: &[u8], name: &[u8]) -> Cmd {
    redis::cmd("DQ.GROUPGET").arg(key).arg(name).to_owned()
}

/// None: the group has neither jobs nor settings, or the server no such command.
pub fn read(value: &Value) -> Option<Share> {
    let fields = reply::Fields::of(value)?;
    let rate = fields.naturals("rate");
    Some(Share {
        weight: fields.natural("weight"),
        max: fields.natural("max"),
        rate: rate.and_then(|it| Some((*it.first()?, *it.get(1)?))),
        maxlen: fields.natural("maxlen"),
        paused: fields.int("paused")?,
        rate_used: fields.natural("rate-used")?,
    })
}

/// What is done to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnGroup {
    /// What is None stays.
    Set {
        weight: Option<u64>,
        max: Option<u64>,
        rate: Option<(u64, u64)>,
        maxlen: Option<u64>,
    },
    /// Takes all settings away, and the pause.
    Clear,
    Pause {
        ms: Option<u64>,
    },
    Resume,
}

impl OnGroup {
    pub fn command(&self, key: &[u8], name: &[u8]) -> Cmd {
        let of = |command: &str| redis::cmd(command).arg(key).to_owned();
        match self {
            OnGroup::Set {
                weight,
                max,
                rate,
                maxlen,
            } => {
                let mut set = of("DQ.GROUPSET");
                set.arg(name);
                for (option, value) in [("WEIGHT", weight), ("MAX", max), ("MAXLEN", maxlen)] {
                    if let Some(value) = value {
                        set.arg(option).arg(value);
                    }
                }
                if let Some((count, ms)) = rate {
                    set.arg("RATE").arg(count).arg(ms);
                }
                set
            }
            OnGroup::Clear => of("DQ.GROUPSET").arg(name).arg("CLEAR").to_owned(),
            OnGroup::Pause { ms } => {
                let mut pause = of("DQ.PAUSE");
                pause.arg(ms);
                pause.arg("GROUP").arg(name).to_owned()
            }
            OnGroup::Resume => of("DQ.RESUME").arg("GROUP").arg(name).to_owned(),
        }
    }

    pub fn result(&self) -> String {
        match self {
            OnGroup::Set { .. } => "the group is set".to_owned(),
            OnGroup::Clear => "the queue's settings hold for the group".to_owned(),
            OnGroup::Pause { ms: None } => "the group is paused until resumed".to_owned(),
            OnGroup::Pause { ms: Some(ms) } => {
                format!("the group is paused for {}", units::millis(*ms))
            }
            OnGroup::Resume => "the group is resumed".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_one_command() {
        let words = |act: OnGroup| {
            let packed = act.command(b"q", b"SET").get_packed_command();
            let text = String::from_utf8(packed).expect("text");
            let words = text.split("\r\n").skip(2).step_by(2);
            words.collect::<Vec<_>>().join(" ")
        };
        let set = OnGroup::Set {
            weight: Some(3),
            max: Some(0),
            rate: Some((100, 60_000)),
            maxlen: None,
        };
        assert_eq!(
            words(set),
            "DQ.GROUPSET q SET WEIGHT 3 MAX 0 RATE 100 60000"
        );
        assert_eq!(words(OnGroup::Clear), "DQ.GROUPSET q SET CLEAR");
        assert_eq!(
            words(OnGroup::Pause { ms: Some(9) }),
            "DQ.PAUSE q 9 GROUP SET"
        );
        assert_eq!(words(OnGroup::Pause { ms: None }), "DQ.PAUSE q GROUP SET");
        assert_eq!(words(OnGroup::Resume), "DQ.RESUME q GROUP SET");
    }
}
