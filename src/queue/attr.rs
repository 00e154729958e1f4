//! What a job may have beside its id, payload and place, as one string of [tagged values](super::tagged): the same in
//! memory, in snapshots, in done jobs and in effects.

mod row;

pub use row::{Home, Kind, Row, Unsaid, CANARY, LADDER_MAX, ROWS};

use super::bytes::{append, take};
use super::error::QueueError;
use super::instant::INSTANT_MAX;
use super::tagged::{check, parts, push, Lasting, IN_DONE};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Makes [`Attr`] of the table.
macro_rules! attributes {
    ($($name:ident { $($column:tt)* })*) => {
        /// What may be said of a job when it is added: a row of the table, in its order.
        #[allow(missing_docs, reason = "the rows describe them")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Attr {
            $($name,)*
            /// Of a newer version, as far as tests are concerned.
            #[cfg(feature = "breakable")]
            Canary,
        }

        impl Attr {
            /// All of them.
            pub const ALL: &'static [Attr] = &[
                $(Attr::$name,)*
                #[cfg(feature = "breakable")]
                Attr::Canary,
            ];
        }
    };
}
include!("attr/rows.rs");

impl Attr {
    /// What the table says of it.
    #[inline(always)]
    pub const fn row(self) -> &'static Row {
        #[cfg(feature = "breakable")]
        if matches!(self, Attr::Canary) {
            return &CANARY;
        }
        &ROWS[self as usize]
    }

    /// See the picture above. 0 is no tag: it has another home.
    pub const fn tag(self) -> u32 {
        match self.row().home {
            Home::Tag(tag) => tag,
            _ => 0,
        }
    }

    fn of_tag(tag: u32) -> Option<Attr> {
        let mut tagged = Attr::ALL.iter().copied();
        tagged.find(|attr| matches!(attr.row().home, Home::Tag(it) if it == tag))
    }

    /// Whether the number is within the bounds.
    #[inline]
    pub fn allows(self, number: u64) -> bool {
        let Kind::Number { least, most, .. } = self.row().kind else {
            return false;
        };
        i64::try_from(number).is_ok_and(|number| (least..=most).contains(&number))
    }

    /// Whether a job that does not say it has this number.
    fn is_unsaid(self, number: u64) -> bool {
        matches!(self.row().unsaid, Unsaid::Is(it) if it == number)
    }

    /// Checks a value as it is encoded.
    fn check(self, value: &[u8]) -> Result<(), QueueError> {
        match self.row().kind {
            Kind::Ladder => Ladder(value).check(),
            Kind::Text(most) if (1..=most).contains(&value.len()) => Ok(()),
            Kind::Text(_) => Err(QueueError::Malformed("a text of an impossible length")),
            Kind::Number { .. } => {
                let mut rest = value;
                let number = take(&mut rest).filter(|_| rest.is_empty());
                let number = number.ok_or(QueueError::Malformed("not one number"))?;
                match self.allows(number) && !self.is_unsaid(number) {
                    true => Ok(()),
                    false => Err(QueueError::OutOfRange),
                }
            }
        }
    }
}

/// See the picture above. Empty for most jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attrs<'a>(#[serde(with = "serde_bytes", borrow)] Cow<'a, [u8]>);

impl<'a> Attrs<'a> {
    /// Without any.
    pub const NONE: Attrs<'static> = Attrs(Cow::Borrowed(&[]));

    /// Of bytes that may be anything: see [`Attrs::check`].
    pub const fn of(bytes: &'a [u8]) -> Self {
        Attrs(Cow::Borrowed(bytes))
    }

    /// Most jobs have none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As encoded.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Copied.
    pub fn into_owned(self) -> Attrs<'static> {
        Attrs(Cow::Owned(self.0.into_owned()))
    }

    /// Not copied.
    pub fn borrowed(&self) -> Attrs<'_> {
        Attrs(Cow::Borrowed(&self.0))
    }

    /// Tags and values, in their order, up to what is not one.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        parts(&self.0).map(|part| (part.tag, part.value))
    }

    fn get(&self, wanted: u32) -> Option<&[u8]> {
        let mut upto = self.iter().skip_while(|&(tag, _)| tag < wanted);
        let found = upto.next().filter(|&(tag, _)| tag == wanted);
        found.map(|(_, value)| value)
    }

    /// Puts a value in its place, or takes it away.
    fn put(&mut self, wanted: u32, value: Option<&[u8]>) {
        let (mut start, mut end) = (0, 0);
        for part in parts(&self.0).take_while(|part| part.tag <= wanted) {
            end = part.end;
            if part.tag < wanted {
                start = end;
            }
        }
        let mut new = self.0[..start].to_vec();
        if let Some(value) = value {
            push(wanted, value, &mut new);
        }
        new.extend_from_slice(&self.0[end..]);
        self.0 = Cow::Owned(new);
    }

    fn number(&self, attr: Attr) -> Option<u64> {
        take(&mut self.get(attr.tag())?)
    }

    /// With a number, which must be within its bounds.
    pub fn with_number(mut self, attr: Attr, number: u64) -> Self {
        let mut value = Vec::new();
        append(&number, &mut value);
        self.put(attr.tag(), (!attr.is_unsaid(number)).then_some(&value));
        self
    }

    /// With a text.
    pub fn with_text(mut self, attr: Attr, text: &[u8]) -> Self {
        self.put(attr.tag(), Some(text));
        self
    }

    /// With the delays of a BACKOFF.
    pub fn with_backoff(mut self, delays: &[u64]) -> Self {
        let mut value = Vec::new();
        delays.iter().for_each(|ms| append(ms, &mut value));
        self.put(Attr::Backoff.tag(), Some(&value));
        self
    }

    /// What was said, or what is so where nothing is said.
    pub fn number_or_unsaid(&self, attr: Attr) -> Option<u64> {
        let unsaid = match attr.row().unsaid {
            Unsaid::Is(number) => Some(number),
            Unsaid::OfQueue | Unsaid::Nothing(_) => None,
        };
        self.number(attr).or(unsaid)
    }

    /// What was said.
    pub fn text(&self, attr: Attr) -> Option<&[u8]> {
        self.get(attr.tag())
    }

    /// Without that attribute.
    pub fn without(mut self, attr: Attr) -> Self {
        self.put(attr.tag(), None);
        self
    }

    /// The delays of BACKOFF, none of them after BACKOFF 0; `None`: the server's hold.
    pub fn backoff(&self) -> Option<Ladder<'_>> {
        self.get(Attr::Backoff.tag()).map(Ladder)
    }

    /// Those of GET and CFGGET: BACKOFF 0 is a delay of 0, and without any the server's hold.
    pub fn backoff_shown(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        let ladder = self.backoff();
        let is_zero = ladder.is_some_and(Ladder::is_empty);
        let delays = ladder.unwrap_or_default().iter();
        is_zero.then_some(0).into_iter().chain(delays)
    }

    /// KEEP of DQ.ADD.
    pub fn keep_ms(&self) -> Option<u64> {
        self.number(Attr::Keep)
    }

    /// What a delivery counts in RATE and GROUPRATE.
    pub fn weight(&self) -> u32 {
        self.number(Attr::Cost).map_or(1, |units| units as u32)
    }

    /// Those that the job has once it is done.
    pub(super) fn when_done(&self) -> Attrs<'_> {
        let mut kept = self.borrowed();
        for (tag, _) in self.iter().filter(|(tag, _)| tag & IN_DONE == 0) {
            kept.put(tag, None);
        }
        kept
    }

    /// These, and of the others those that these do not say.
    #[inline]
    pub fn or<'s>(&'s self, others: &'s Attrs<'_>) -> Attrs<'s> {
        match others.is_empty() {
            true => self.borrowed(),
            false => self.with_those_of(others),
        }
    }

    #[inline(never)]
    fn with_those_of<'s>(&'s self, others: &'s Attrs<'_>) -> Attrs<'s> {
        let mut all = self.borrowed();
        for (tag, value) in others.iter().filter(|&(tag, _)| self.get(tag).is_none()) {
            all.put(tag, Some(value));
        }
        all
    }

    /// Checks the bounds, which hold wherever the string came from.
    #[inline]
    pub fn check(&self) -> Result<(), QueueError> {
        if self.is_empty() {
            return Ok(());
        }
        self.check_each()
    }

    #[inline(never)]
    fn check_each(&self) -> Result<(), QueueError> {
        check(&self.0, |part| match Attr::of_tag(part.tag) {
            Some(attr) => attr.check(part.value).map(|()| true),
            None if Lasting::of(part.tag) != Lasting::Terms => {
                Err(QueueError::Malformed("a note among attributes"))
            }
            None => Ok(false),
        })
    }
}

/// Delays before the second, third, ... delivery, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ladder<'a>(&'a [u8]);

impl<'a> Ladder<'a> {
    /// That of BACKOFF 0.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// How many delays.
    pub fn len(self) -> usize {
        // The last byte of a number is less than 128.
        self.0.iter().filter(|&&byte| byte < 128).count()
    }

    /// The delays.
    pub fn iter(self) -> impl Iterator<Item = u64> + Clone + 'a {
        let mut rest = self.0;
        std::iter::from_fn(move || take(&mut rest))
    }

    /// See [`delay_after`].
    pub fn after(self, attempts: u32) -> u64 {
        delay_after(self.iter(), attempts)
    }

    fn check(self) -> Result<(), QueueError> {
        if self.len() > LADDER_MAX {
            return Err(QueueError::LadderLength);
        }
        let (mut rest, fits) = (self.0, |ms: &u64| (1..=INSTANT_MAX).contains(ms));
        while !rest.is_empty() {
            let ms =
                take(&mut rest).ok_or(QueueError::Malformed("a ladder that does not decode"))?;
            if !fits(&ms) {
                return Err(QueueError::OutOfRange);
            }
        }
        Ok(())
    }
}

/// The delay after the `attempts`-th delivery failed; the last one repeats.
pub fn delay_after(delays: impl Iterator<Item = u64>, attempts: u32) -> u64 {
    delays.take(attempts.max(1) as usize).last().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::tagged::{CRITICAL, UNKNOWN_BYTES_MAX, UNKNOWN_MAX};

    fn checked(entries: &[(u32, &[u8])]) -> Result<(), QueueError> {
        let mut bytes = Vec::new();
        for (tag, value) in entries {
            append(&(tag, serde_bytes::Bytes::new(value)), &mut bytes);
        }
        Attrs::of(&bytes).check()
    }

    #[test]
    fn forged_strings_are_refused() {
        let (keep, cost) = (Attr::Keep.tag(), Attr::Cost.tag());
        assert_eq!(checked(&[(keep, &[0]), (cost, &[2])]), Ok(()));
        let forged: [&[(u32, &[u8])]; 13] = [
            &[(cost, &[2]), (keep, &[0])],
            &[(keep, &[0]), (keep, &[0])],
            &[(keep, &[])],
            &[(keep, &[0, 0])],
            &[(keep, &[0x80])],
            &[(keep, &[0xff; 11])],
            &[(cost, &[0])],
            &[(cost, &[1])],
            &[(cost, &[0xc1, 0x84, 0x3d])],
            &[(Attr::Backoff.tag(), &[5, 0])],
            &[(Attr::Backoff.tag(), &[0x80])],
            &[(0x102, b"a note's life")],
            &[(u32::MAX, b""), (u32::MAX, b"")],
        ];
        for entries in forged {
            assert!(checked(entries).is_err(), "{entries:?}");
        }
        // Cut anywhere; a tag beyond 32 bits; a length beyond the end.
        let whole = Attrs::NONE.with_number(Attr::Keep, 7).with_backoff(&[1, 2]);
        for cut in 1..whole.bytes().len() {
            let fits = [0, 3].contains(&cut);
            assert_eq!(
                Attrs::of(&whole.bytes()[..cut]).check().is_ok(),
                fits,
                "{cut}"
            );
        }
        for bytes in [
            &b"\x87\x80\x80\x80\x10\x00"[..],
            b"\x07\xff\xff\xff\xff\x0f\x01",
        ] {
            assert!(Attrs::of(bytes).check().is_err());
        }
    }

    #[test]
    fn what_is_not_known_is_carried_on_within_bounds() {
        let tag = |number: u32| number << 4 | IN_DONE | Lasting::Terms as u32;
        assert_eq!(
            checked(&[(tag(100) | CRITICAL, b"x")]),
            Err(QueueError::Newer)
        );
        let many = |count: u32| -> Vec<(u32, &[u8])> {
            (0..count)
                .map(|number| (tag(100 + number), &b"x"[..]))
                .collect()
        };
        assert_eq!(checked(&many(UNKNOWN_MAX as u32)), Ok(()));
        assert!(checked(&many(UNKNOWN_MAX as u32 + 1)).is_err());
        let long = [b'x'; UNKNOWN_BYTES_MAX + 1];
        assert_eq!(checked(&[(tag(100), &long[..UNKNOWN_BYTES_MAX])]), Ok(()));
        assert!(checked(&[(tag(100), &long)]).is_err());
        // Set and read beside them, and kept by a done job where their class says so.
        let mut all = Attrs::NONE.with_number(Attr::Cost, 3);
        all.put(tag(100), Some(b"in done"));
        all.put(tag(101) & !IN_DONE, Some(b"not"));
        assert_eq!((all.weight(), all.keep_ms()), (3, None));
        assert_eq!(all.when_done().get(tag(100)), Some(&b"in done"[..]));
        assert_eq!(all.when_done().iter().count(), 2);
        let others = Attrs::NONE
            .with_number(Attr::Cost, 9)
            .with_number(Attr::Keep, 8);
        let both = all.or(&others);
        assert_eq!((both.weight(), both.keep_ms()), (3, Some(8)));
        assert_eq!((both.check(), both.iter().count()), (Ok(()), 4));
    }

    #[test]
    fn the_table_is_in_the_order_of_tags() {
        let homes = Attr::ALL.iter().map(|attr| attr.row().home);
        let tags = homes.filter_map(|home| match home {
            Home::Tag(tag) => Some(tag),
            _ => None,
        });
        let tags: Vec<u32> = tags.collect();
        assert!(tags.len() >= 3 && tags.is_sorted_by(|a, b| a < b));
        assert!(tags.iter().all(|&tag| Lasting::of(tag) == Lasting::Terms));
        for attr in Attr::ALL {
            let (row, word) = (attr.row(), attr.row().word());
            assert_eq!(word.to_lowercase(), row.name());
            if let Kind::Number { unit, least, most } = row.kind {
                assert!(least < most && (unit != c"ms" || most == INSTANT_MAX as i64));
            }
        }
    }
}
