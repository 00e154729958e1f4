use super::*;
use crate::queue::attr::Attrs;
use crate::queue::codec::tests::edges;
use crate::queue::effect::Effect;
use crate::queue::job::ID_MAX;
use crate::queue::recurring::rule::Pattern;
use crate::queue::{HashSeed, Queue};

/// Of so many delays the tagged string takes as many bytes as is shared, at most.
const LADDER_SHARED: usize = REST_SHARED - 2;

fn terms(ladder: usize) -> Terms<'static> {
    Terms {
        priority: -5,
        ttr_ms: 1000,
        max_attempts: 2,
        rest: match ladder {
            0 => Attrs::NONE,
            _ => Attrs::NONE.with_backoff(&vec![7; ladder]),
        },
    }
}

fn job<'a>(id: &'a [u8], terms: &'a Terms<'a>) -> NewJob<'a> {
    NewJob {
        id,
        payload: b"payload",
        seq: 7,
        due: 8,
        place: Place::Scheduled,
        terms,
        life: Life::default(),
        failure: None,
        recurring: None,
        group: None,
        turn: None,
    }
}

fn rule(text: &'static [u8]) -> Rule<'static> {
    Rule {
        pattern: Pattern::Cron {
            text: text.into(),
            zone: b"UTC"[..].into(),
        },
        until: 1,
        times: 2,
        grace_ms: 3,
        jitter_ms: 4,
        ttl_ms: 5,
    }
}

fn occurrence(runs: u64) -> Occurrence {
    Occurrence {
        at: u64::MAX,
        runs,
        delivered: runs % 2 == 1,
        offset_s: -3600,
    }
}

fn written<'a>(jobs: impl IntoIterator<Item = NewJob<'a>>) -> Vec<u8> {
    let mut rows = Rows::default();
    jobs.into_iter().for_each(|job| rows.push(&job));
    rows.bytes().to_vec()
}

fn fields<'a>(job: &NewJob<'a>) -> impl PartialEq + std::fmt::Debug + 'a {
    let numbers = (job.seq, job.due, job.place, job.life, job.failure);
    let recurring = job.recurring.clone();
    let recurring = recurring.map(|(rule, occurrence)| (rule.into_owned(), occurrence));
    let numbers = (numbers, recurring);
    (job.id, job.payload, numbers, job.terms.clone().into_owned())
}

#[test]
fn what_is_written_is_read() {
    let all_terms = [terms(0), terms(LADDER_SHARED), terms(LADDER_SHARED + 1)];
    let life = Life {
        expires: 1,
        token: u64::MAX,
        at: 2,
        lease_ms: 3,
        death: 4,
        attempts: u32::MAX,
    };
    let numbers = [0, 1, u64::MAX, 1 << 63, 5, 5];
    let rules = [rule(b"@daily"), rule(b"* * * * *")];
    let ids: Vec<Vec<u8>> = (1..=36)
        .map(|len| vec![len; len as usize % 5 + 1])
        .collect();
    let jobs = || {
        ids.iter().enumerate().map(|(n, id)| NewJob {
            payload: &id[..id.len() % 3],
            seq: numbers[n % 6],
            due: numbers[(n + 1) % 6],
            place: [
                Place::Scheduled,
                Place::Reserved,
                Place::Dead,
                Place::Successor,
            ][n % 4],
            recurring: (n % 3 > 0).then(|| (rules[n / 9 % 2].borrowed(), occurrence(n as u64))),
            failure: (n % 5 < 2).then_some(Failure {
                at: 9,
                reason: n.is_multiple_of(2).then_some(id),
            }),
            life: if n % 4 == 0 { life } else { Life::default() },
            ..job(id, &all_terms[n / 12])
        })
    };
    let bytes = written(jobs());
    let all = read(&bytes).unwrap();
    let terms = &all.terms;
    let read: Vec<_> = all.jobs().map(|job| fields(&job)).collect();
    let wrote: Vec<_> = jobs().map(|job| fields(&job)).collect();
    assert_eq!(read, wrote);
    assert_eq!(
        terms.len(),
        2 + 12,
        "long ladders once a row, the others once"
    );
}

#[test]
fn what_nobody_writes_is_refused() {
    let (short, long) = (terms(1), terms(LADDER_SHARED + 1));
    let one = written([job(b"a", &short)]);
    let two = written([job(b"a", &short), job(b"b", &short)]);
    assert!(read(&two).is_ok());
    let unused = |bit| [&[one[0] | bit], &one[1..]].concat();
    let follower = &two[one.len()..];
    let borrowed_ladder = [&written([job(b"a", &long)]), follower].concat();
    let more = |bits: u8| [&[one[0] | MORE], &one[1..3], &[bits], &one[3..]].concat();
    for bytes in [
        more(0),
        more(OCCURRENCE),
        more(RULE),
        more(8),
        unused(MORE),
        unused(1 << 7),
        follower.to_vec(),
        borrowed_ladder,
        one[..one.len() - 1].to_vec(),
    ] {
        assert!(read(&bytes).is_err(), "{}", bytes.escape_ascii());
    }
    let most = [one.clone(), follower.repeat(ROWS_MAX - 1)].concat();
    assert_eq!(read(&most).unwrap().rows.len(), ROWS_MAX);
    assert!(read(&[most, follower.to_vec()].concat()).is_err());
}

#[test]
fn all_rows_come_or_none() {
    let terms = &terms(1);
    let mut queue = Queue::new(&HashSeed::new([1, 2, 3, 4]));
    let mut come = |jobs: Vec<NewJob<'_>>| {
        let rows = &written(jobs);
        let came = queue.apply(&Effect::Rows { rows }).is_ok();
        queue.check_invariants().unwrap();
        let now = crate::queue::clock::Now::from_ms(1);
        (came, queue.at(now).len(None))
    };
    let impossible = NewJob {
        due: u64::MAX,
        ..job(b"x", terms)
    };
    assert_eq!(come(vec![]), (true, 0));
    assert_eq!(come(vec![job(b"a", terms), impossible]), (false, 0));
    assert_eq!(
        come([b"a", b"b", b"a"].map(|id| job(id, terms)).into()),
        (false, 0)
    );
    assert_eq!(
        come([b"a", b"b"].map(|id| job(id, terms)).into()),
        (true, 2)
    );
    assert_eq!(
        come([b"c", b"a"].map(|id| job(id, terms)).into()),
        (false, 2)
    );
}

#[test]
fn numbers_come_back_from_every_bound_to_every_other() {
    let edges: Vec<u64> = edges().collect();
    let terms = &terms(0);
    for &from in &edges {
        for &to in &edges {
            let jobs = || {
                [(from, to), (to, from)].map(|(due, seq)| NewJob {
                    due,
                    seq,
                    ..job(b"a", terms)
                })
            };
            let bytes = written(jobs());
            let all = read(&bytes).unwrap();
            assert!(all
                .jobs()
                .map(|it| fields(&it))
                .eq(jobs().iter().map(fields)));
        }
    }
}

#[test]
fn ids_come_back_in_every_length_that_they_may_have() {
    let (longest, terms) = ([b'x'; ID_MAX], terms(0));
    let jobs = || (1..=ID_MAX).map(|len| job(&longest[..len], &terms));
    let bytes = written(jobs());
    let all = read(&bytes).unwrap();
    assert!(all.jobs().map(|it| it.id).eq(jobs().map(|it| it.id)));
}

/// A row of zeros with this head, and with the byte `more` if the head says so; then `behind` zeros.
fn zeros(head: u8, more: u8, behind: usize) -> Vec<u8> {
    let part = |bit, bytes: &[u8]| {
        if head & bit == 0 {
            vec![]
        } else {
            bytes.to_vec()
        }
    };
    [
        vec![head, 0, 0],
        part(ID_LEN, &[0]),
        part(PAYLOAD_LEN, &[0]),
        part(TERMS, &[0; 4]),
        part(LIFE, &[0; 6]),
        part(MORE, &[more]),
        vec![0; behind],
    ]
    .concat()
}

/// Whether a row with these bytes may follow one without a rule and without a group.
fn may_follow(head: u8, more: u8) -> bool {
    let is_whole = |more: u8| {
        let has_rule = more & (OCCURRENCE | RULE);
        let known = 1..TURN << 1;
        known.contains(&more)
            && (has_rule == 0 || has_rule == OCCURRENCE | RULE)
            && more & SAME_GROUP == 0
    };
    (head & BLOCKED == 0 || head & PLACE == Place::Successor as u8)
        && (head & MORE == 0 || is_whole(more))
}

/// Every head, with every byte `more`: what can be read is written and read again as it was.
#[test]
fn every_head_is_read_or_refused() {
    let terms = &terms(0);
    let before = written([job(b"a", terms)]);
    for head in 0..=255 {
        let mores = if head & MORE == 0 { 0..=0 } else { 0..=255 };
        for more in mores {
            let mut is_read = false;
            for behind in 0..24 {
                let bytes = [&before[..], &zeros(head, more, behind)].concat();
                let Ok(all) = read(&bytes) else {
                    continue;
                };
                is_read = true;
                let again = written(all.jobs());
                let again = read(&again).unwrap();
                assert!(again
                    .jobs()
                    .map(|it| fields(&it))
                    .eq(all.jobs().map(|it| fields(&it))));
            }
            assert_eq!(is_read, may_follow(head, more), "{head:#x} {more:#x}");
        }
    }
}
