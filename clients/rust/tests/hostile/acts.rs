//! The worst that Rust can make: errors, panics, results and payloads.

use dq_redis::{give_up, retry_in, snooze, BoxError, Error, Job, NewJob, Suspended, WaitFor};
use serde::de::Deserializer;
use serde::ser::{Error as _, Serializer};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Order {
    pub place: String,
    pub act: usize,
}

pub fn order(place: &str, act: usize) -> Order {
    Order {
        place: place.to_owned(),
        act,
    }
}

/// Panics when it is dropped.
#[derive(Debug)]
pub struct Sour;

impl Drop for Sour {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("when it is dropped");
        }
    }
}

#[derive(Debug)]
pub struct SourError(#[allow(dead_code)] pub Sour);

impl fmt::Display for SourError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sour")
    }
}

impl std::error::Error for SourError {}

#[derive(Debug)]
pub struct Silent;

impl fmt::Display for Silent {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::panic::panic_any(Sour)
    }
}

impl std::error::Error for Silent {}

pub struct Shapeless;

impl fmt::Debug for Shapeless {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no shape")
    }
}

impl fmt::Display for Shapeless {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Err(fmt::Error)
    }
}

impl std::error::Error for Shapeless {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        panic!("no source")
    }
}

/// Its own source, and its text has no end.
pub struct Endless;

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        loop {
            f.write_str("and so on ")?;
        }
    }
}

impl fmt::Debug for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Endless {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        static ENDLESS: Endless = Endless;
        Some(&ENDLESS)
    }
}

/// What a handler returns.
pub enum Answer {
    Number(f64),
    Deep(Vec<Option<HashMap<String, (f32, char)>>>),
    NoKeys(HashMap<(u8, u8), u8>),
    Refusing,
    Panicking,
    SourWithin(#[allow(dead_code)] Sour),
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Answer::Number(number) => number.serialize(to),
            Answer::Deep(deep) => deep.serialize(to),
            Answer::NoKeys(map) => map.serialize(to),
            Answer::Refusing => Err(S::Error::custom(Shapeless)),
            Answer::Panicking => std::panic::panic_any(Sour),
            Answer::SourWithin(_) => to.serialize_unit(),
        }
    }
}

/// A payload.
pub enum Data {
    Good,
    Sour(#[allow(dead_code)] Sour),
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Order::deserialize(from)?.act % 4 {
            0 => Ok(Data::Good),
            1 => Ok(Data::Sour(Sour)),
            2 => std::panic::panic_any(Sour),
            _ => Err(serde::de::Error::custom(Shapeless)),
        }
    }
}

pub type Act = fn(&Job) -> Result<Answer, BoxError>;

pub fn named(name: &str, number: f32) -> HashMap<String, (f32, char)> {
    HashMap::from([(name.to_owned(), (number, 'x'))])
}

pub const ACTS: &[Act] = &[
    |_| panic!("no paper"),
    |_| panic!("{}", "no paper ".repeat(5_000)),
    |_| std::panic::panic_any(17),
    |_| std::panic::panic_any(Sour),
    |_| std::panic::resume_unwind(Box::new(SourError(Sour))),
    |_| Err("".into()),
    |_| Err("\0\u{10ffff}\r\n".repeat(100_000).into()),
    |_| Err(SourError(Sour).into()),
    |_| Err(Silent.into()),
    |_| Err(Shapeless.into()),
    |_| Err(Endless.into()),
    |_| Err(Suspended.into()),
    |_| Err(Error::Suspended(Suspended).into()),
    |_| Err(Error::NotOurs.into()),
    |_| Err(retry_in(Duration::MAX).because(Silent).into()),
    |_| Err(retry_in(Duration::from_secs(100 * 365 * 24 * 3600)).into()),
    |_| Err(snooze(Duration::MAX).because(Endless).into()),
    |_| Err(snooze(Duration::from_secs(100 * 365 * 24 * 3600)).into()),
    |_| Err(give_up(Shapeless).into()),
    |_| Err(give_up("\u{ffff}".repeat(10_000)).into()),
    |_| Ok(Answer::Number(f64::NAN)),
    |_| Ok(Answer::Number(f64::NEG_INFINITY)),
    |_| Ok(Answer::Deep(vec![None, Some(named("a", f32::INFINITY))])),
    |_| Ok(Answer::NoKeys(HashMap::from([((1, 2), 3)]))),
    |_| Ok(Answer::Refusing),
    |_| Ok(Answer::Panicking),
    |_| Ok(Answer::SourWithin(Sour)),
    |job| {
        job.progress(f64::NAN, "")?;
        job.progress(2.0, "")?;
        Ok(Answer::Number(1.0))
    },
    |job| {
        job.fail(SourError(Sour));
        job.fail(Silent); // it drops the other one
        Err(job.succeed(&f64::NAN).expect_err("it is no JSON").into())
    },
    |job| {
        // Whoever has the job last drops what was said of it.
        let job = job.clone();
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            job.fail(SourError(Sour));
        });
        Err(SourError(Sour).into())
    },
];

/// Of steps: they await.
pub async fn step(job: &Job, n: usize) -> Result<(), BoxError> {
    match n % 7 {
        0 => _ = job.step("nan", async || Ok::<_, Error>(f64::NAN)).await?,
        1 => {
            let panics = async || -> Result<u8, Error> { std::panic::panic_any(Sour) };
            _ = job.step("panics", panics).await?;
        }
        2 => {
            let sour = async || Err::<u8, _>(SourError(Sour));
            _ = job.step("sour", sour).await?;
        }
        3 => _ = job.step("dq:own", async || Ok::<_, Error>(1)).await?,
        4 => {
            _ = job
                .spawn(vec![NewJob::new(&f64::NAN)], WaitFor::new())
                .await?
        }
        5 => job.sleep("for ever", Duration::MAX).await?,
        _ => _ = job.wait_within::<u8>("\0", Duration::MAX).await?,
    }
    Err(SourError(Sour).into())
}
