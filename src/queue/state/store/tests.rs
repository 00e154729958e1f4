use super::*;
use crate::queue::attr::Attrs;
use crate::queue::job::Terms;

fn terms(priority: i32) -> Terms<'static> {
    Terms {
        priority,
        ttr_ms: 60_000,
        max_attempts: 3,
        rest: Attrs::NONE.with_backoff(&[10, 20]),
    }
}

fn store() -> Store {
    Store::new(RandomState::with_seeds(1, 2, 3, 4).into())
}

/// jemalloc's, as its manual lists them.
#[test]
fn what_is_allocated_is_the_next_size_class() {
    let small = [8, 16, 32, 48, 64, 80, 96, 112, 128];
    let steps = (8..20).flat_map(|log| (5..=8).map(move |part| part << (log - 3)));
    let classes: Vec<usize> = small.into_iter().chain(steps).collect();
    assert!(classes.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(allocated(0), 0);
    for len in 1..100_000 {
        let class = classes.iter().find(|&&class| class >= len);
        assert_eq!(Some(&allocated(len)), class, "{len}");
    }
    let ladder = |steps| Terms {
        rest: match steps {
            0 => Attrs::NONE,
            _ => Attrs::NONE.with_backoff(&vec![1; steps]),
        },
        ..terms(0)
    };
    let own_bytes = |steps| {
        let parts = Parts {
            terms: Some(ladder(steps)),
            ..Parts::default()
        };
        Extra::of(parts).unwrap().heap_bytes()
    };
    assert_eq!(own_bytes(800) - own_bytes(0), 896);
    assert_eq!(own_bytes(0), allocated(size_of::<Terms<'_>>()));
}

fn add(store: &mut Store, id: &[u8], payload: &[u8], seq: u64, terms: &Terms<'_>) -> Handle {
    let job = NewJob {
        id,
        payload,
        seq,
        due: 7,
        place: Place::Scheduled,
        terms,
        life: Life::default(),
        failure: None,
        recurring: None,
        group: None,
        turn: None,
    };
    store.insert(&job, store.hashed(id), None)
}

#[test]
fn every_field_keeps_to_itself() {
    let mut store = store();
    let longest = vec![0xff; ID_MAX];
    let job = add(&mut store, &longest, b"\0payload\xff", SEQ_BITS, &terms(-5));
    let life = Life {
        expires: INSTANT_MAX,
        token: u64::MAX,
        at: 1,
        lease_ms: 2,
        death: 3,
        attempts: u32::MAX,
    };
    for (due, place, life) in [
        (INSTANT_MAX, Place::Dead, life),
        (0, Place::Scheduled, Life::default()),
        (5, Place::Reserved, life),
    ] {
        let status = Status { place, due, life };
        store.set_status(job, status);
        store.set_priority(job, due as i32);
        assert_eq!(store.job(job).status(), status);
        assert_eq!(store.find(store.hashed(&longest)), Some(job));
        assert_eq!(store.job(job).payload(), b"\0payload\xff");
        assert_eq!((store.job(job).due(), store.job(job).place()), (due, place));
        assert_eq!(
            (store.job(job).life(), store.job(job).seq()),
            (life, SEQ_BITS)
        );
        assert_eq!(*store.job(job).terms(), terms(due as i32));
        let is_rare = life != Life::default();
        assert_eq!(store.rares.len(), usize::from(is_rare));
    }
    store.check_invariants().unwrap();
    store.remove(job);
    assert_eq!(store.find(store.hashed(&longest)), None);
    store.check_invariants().unwrap();
}

#[test]
fn a_client_is_known_until_the_lease_ends_and_is_no_data() {
    let mut store = store();
    let job = add(&mut store, b"a", b"x", 1, &terms(0));
    let leased = Life {
        token: 1,
        at: 2,
        ..Life::default()
    };
    let touched = Life { at: 3, ..leased };
    let dead = Life {
        death: 4,
        ..touched
    };
    let placed = |store: &mut Store, place, life| {
        let status = Status {
            place,
            due: 5,
            life,
        };
        store.set_status(job, status);
        assert_eq!(store.job(job).status(), status);
        store.client_of(job)
    };
    for gone in [(Place::Dead, dead), (Place::Scheduled, leased)] {
        assert_eq!(placed(&mut store, Place::Reserved, leased), None);
        store.set_client(job, u64::MAX - 1);
        assert_eq!(store.client_of(job), Some(u64::MAX - 1));
        assert_eq!(placed(&mut store, Place::Scheduled, leased), None);
        store.deliver_to(u64::MAX);
        placed(&mut store, Place::Reserved, leased);
        assert_eq!(store.client_of(job), Some(u64::MAX));
        assert_eq!(store.job(job).life(), leased);
        assert_eq!(store.as_new(job).life, leased);
        let kept = placed(&mut store, Place::Reserved, touched);
        assert_eq!(kept, Some(u64::MAX));
        assert_eq!(placed(&mut store, gone.0, gone.1), None);
    }
    assert_eq!(placed(&mut store, Place::Reserved, leased), None);
    // It is what the words that tell which entries are vacant would take.
    assert_eq!(size_of::<Option<Rare>>(), size_of::<Rare>());
    assert_eq!(size_of::<Rare>(), 72);
}

#[test]
fn more_distinct_terms_than_the_pool_keeps() {
    let mut store = store();
    let jobs: Vec<Handle> = (0..10_000)
        .map(|n| {
            add(
                &mut store,
                n.to_string().as_bytes(),
                b"",
                n,
                &terms(n as i32),
            )
        })
        .collect();
    for (n, &job) in jobs.iter().enumerate() {
        assert_eq!(*store.job(job).terms(), terms(n as i32));
        store.set_priority(job, -(n as i32));
    }
    let leased = Life {
        token: 1,
        at: 2,
        lease_ms: 3,
        ..Life::default()
    };
    for (n, &job) in jobs.iter().enumerate() {
        assert_eq!(*store.job(job).terms(), terms(-(n as i32)));
        assert_eq!(
            (store.job(job).due(), store.job(job).life()),
            (7, Life::default())
        );
        let courses = [
            (Place::Reserved, leased),
            (Place::Scheduled, Life::default()),
        ];
        for (place, life) in courses {
            let status = Status {
                place,
                due: 8,
                life,
            };
            store.set_status(job, status);
            assert_eq!(store.job(job).status(), status);
            assert_eq!(*store.job(job).terms(), terms(-(n as i32)));
        }
        store.remove(job);
    }
    assert_eq!(store.terms.users(), 0);
    store.check_invariants().unwrap();
}

/// Due, length of the id, place and number of a job.
type Fields = (u64, usize, Place, u64);

const PLACES: [Place; 4] = [
    Place::Scheduled,
    Place::Reserved,
    Place::Dead,
    Place::Blocked,
];

/// Each bit of the two words comes from one bit of one field, by a shift. So where each bit alone comes back
/// as it was, with all others clear and with all others set, every combination of them does.
fn fields_come_back(pass: impl Fn(Fields) -> Fields) -> bool {
    let bits = |count: u32| (0..count).map(|bit| 1u64 << bit);
    let each = |count: u32| {
        let all = (1u64 << count) - 1;
        let one = bits(count).chain(bits(count).map(move |bit| all & !bit));
        one.chain([0, all]).collect::<Vec<u64>>()
    };
    let lens = || each(10).into_iter().map(|less| less as usize + 1);
    PLACES.into_iter().all(|place| {
        lens().all(|len| {
            let dues = each(42).into_iter().map(|due| (due, len, place, 0));
            let seqs = each(47)
                .into_iter()
                .map(|seq| (INSTANT_MAX, len, place, seq));
            dues.chain(seqs).all(|fields| pass(fields) == fields)
        })
    })
}

#[test]
fn no_bit_of_a_word_is_of_two_fields() {
    let id = [b'x'; ID_MAX];
    let stored = |(due, len, place, seq): Fields| {
        let (mut store, terms) = (store(), terms(0));
        let handle = add(&mut store, &id[..len], b"payload", seq, &terms);
        let life = Life::default();
        store.set_status(handle, Status { place, due, life });
        let job = store.job(handle);
        assert_eq!(job.payload(), b"payload");
        (job.due(), job.id().len(), job.place(), job.seq())
    };
    assert!(fields_come_back(stored));
    // If fields overlap, or one is too short by a bit, not all come back.
    let packed = |shift: u32, mask: u64| {
        move |(due, len, place, seq): Fields| {
            let word = due | (len as u64 - 1) << shift | (place as u64).min(3) << 52;
            let place = PLACES[(word >> 52 & 3) as usize];
            let len = (word >> shift & 1023) as usize + 1;
            (word & mask, len, place, seq)
        }
    };
    assert!(fields_come_back(packed(42, INSTANT_MAX)));
    assert!(!fields_come_back(packed(41, INSTANT_MAX)));
    assert!(!fields_come_back(packed(43, INSTANT_MAX)));
    assert!(!fields_come_back(packed(42, INSTANT_MAX / 2)));
}
