//! `make bench-compress`: what far jobs would take if their payloads were compressed, each by itself or many together as in
//! the pages of a queue, and what packing and unpacking them costs. An experiment: nothing of it is in the module.

#[path = "../../../src/storage/allocated.rs"]
mod allocated;
mod codec;
mod jobs;
#[path = "../../suite/machine.rs"]
#[allow(dead_code)] // The other benchmarks use the rest of it.
mod machine;
mod queue;

use allocated::allocated;
use codec::{joined, trained, Codec, Lz4, Zstd};
use jobs::{job, Job};
use std::fmt::Write as _;
use std::time::Instant;
use std::{env, fs, process};

/// Of a job in a page: two words (see src/queue/state/store.rs) and the id.
const HEADER: usize = 16;
/// Of a job whose payload alone is packed: the number of its block, and which of it.
const STAYS_BEHIND: usize = 5;
/// What leads to a block: pointer and length.
const OF_A_BLOCK: usize = 16;
/// One by one; a quarter of a page of 8 KB; a page; 32 KB.
const TOGETHER: [usize; 4] = [1, 8, 34, 136];
const SAMPLES: usize = 20_000;
/// How many jobs a dictionary may learn from, and its size.
const LESSONS: [(usize, usize); 5] = [
    (1000, 16 << 10),
    (5000, 16 << 10),
    (5000, codec::DICTIONARY_BYTES),
    (SAMPLES, codec::DICTIONARY_BYTES),
    (SAMPLES, 110 << 10),
];
/// A page of jobs, the steps of the sizes of its slots, and those of pages of done jobs (see src/storage/arena/page.rs).
const PAGE: usize = 8 << 10;
const STEP: usize = 16;
const FINE_STEP: usize = 8;
const JOBS: usize = 1_000_000;

struct Measured {
    name: String,
    together: usize,
    /// Of the payload, or of all that is packed.
    packed_bytes: f64,
    bytes_per_job: f64,
    /// The same in finer slots, where it is in the queue's pages.
    fine: Option<f64>,
    pack_us: f64,
    unpack_us: f64,
    /// One block: what a look at one job costs.
    block_us: f64,
}

struct Bench {
    jobs: Vec<Job>,
    plain: f64,
    /// Of these what is in no slot: index and schedule.
    beside: f64,
}

fn main() {
    let given = env::var("JOBS").ok().filter(|it| !it.is_empty());
    let count = given.map_or(JOBS, |it| it.parse().expect("JOBS is a number"));
    let about = machine::description();
    if let Some(cores) = machine::Cores::find() {
        machine::pin(cores.server);
    }
    let bench = Bench::of(count);
    let measured: Vec<Measured> = TOGETHER
        .into_iter()
        .flat_map(|it| bench.measure(it))
        .collect();
    let lessons = LESSONS.map(|lesson| bench.learn(lesson));
    report(&about, &bench, &measured, &lessons);
}

impl Bench {
    fn of(count: usize) -> Bench {
        let start_ms = machine::now_ms();
        let mut jobs: Vec<Job> = (0..count as u64)
            .map(|number| job(number, start_ms))
            .collect();
        let plain = queue::bytes_per_job(jobs.iter().map(|it| (it, &it.payload[..])), start_ms);
        let beside = plain - slots(jobs.iter().map(|it| it.payload.len()), STEP);
        // Those are together that are due together: what unpacks them in time has to unpack few others.
        jobs.sort_by_key(|job| job.due);
        Bench {
            jobs,
            plain,
            beside,
        }
    }

    fn measure(&self, together: usize) -> Vec<Measured> {
        let blocks = self.blocks(together, block);
        let samples = self.samples(SAMPLES);
        let (learned, texts) = (trained(&samples, codec::DICTIONARY_BYTES), joined(&samples));
        let run = |name: &str, codec: &mut dyn Codec| self.run(name, together, &blocks, codec);
        let mut all = vec![];
        for level in [1, 3] {
            all.push(run(&format!("zstd {level}"), &mut Zstd::new(level, None)));
            all.push(run(
                &format!("zstd {level}, dictionary"),
                &mut Zstd::new(level, Some(&learned)),
            ));
        }
        all.push(run("lz4", &mut Lz4::new(None)));
        all.push(run("lz4, dictionary", &mut Lz4::new(Some(&texts))));
        if together > 1 {
            let payloads = self.blocks(together, payloads);
            let codec = &mut Zstd::new(3, Some(&learned));
            let name = "zstd 3, dictionary, payloads alone";
            let mut measured = self.run(name, together, &payloads, codec);
            let slot = [STAYS_BEHIND].into_iter();
            measured.bytes_per_job += slots(slot, FINE_STEP);
            all.push(measured);
        }
        all
    }

    fn blocks(&self, together: usize, block: fn(&[Job]) -> Vec<u8>) -> Vec<Vec<u8>> {
        self.jobs.chunks(together).map(block).collect()
    }

    fn run(
        &self,
        name: &str,
        together: usize,
        blocks: &[Vec<u8>],
        codec: &mut dyn Codec,
    ) -> Measured {
        let start = Instant::now();
        let packed: Vec<Vec<u8>> = blocks.iter().map(|block| codec.pack(block)).collect();
        let pack_us = us(start);
        let start = Instant::now();
        for (packed, block) in packed.iter().zip(blocks) {
            assert!(
                codec.unpack(packed, block.len()) == *block,
                "{name} gives back what it got"
            );
        }
        let unpack_us = us(start);
        let jobs = self.jobs.len() as f64;
        let sum = packed.iter().map(Vec::len).sum::<usize>() as f64;
        let bytes_per_job = match together {
            // The queue's own pages hold it, where its payload is.
            1 => {
                let mut payloads: Vec<_> = self
                    .jobs
                    .iter()
                    .zip(packed.iter().map(|it| &it[..]))
                    .collect();
                payloads.sort_by_key(|(job, _)| job.seq);
                queue::bytes_per_job(payloads.into_iter(), machine::now_ms())
            }
            _ => {
                let held = packed
                    .iter()
                    .map(|it| allocated(it.len()) + OF_A_BLOCK)
                    .sum::<usize>();
                self.beside + held as f64 / jobs
            }
        };
        Measured {
            name: name.to_owned(),
            together,
            packed_bytes: sum / jobs,
            bytes_per_job,
            fine: (together == 1)
                .then(|| self.beside + slots(packed.iter().map(Vec::len), FINE_STEP)),
            pack_us: pack_us / jobs,
            unpack_us: unpack_us / jobs,
            block_us: unpack_us / blocks.len() as f64,
        }
    }

    /// So many payloads, of jobs from everywhere.
    fn samples(&self, count: usize) -> Vec<Vec<u8>> {
        let every = (self.jobs.len() / count).max(1);
        let some = self.jobs.iter().step_by(every);
        some.map(|it| it.payload.clone()).take(count).collect()
    }

    /// ms of training, and the bytes of a payload packed by itself with what was learnt.
    fn learn(&self, (samples, bytes): (usize, usize)) -> (f64, f64) {
        let samples = self.samples(samples);
        let start = Instant::now();
        let learned = trained(&samples, bytes);
        let ms = us(start) / 1e3;
        let mut codec = Zstd::new(3, Some(&learned));
        let packed: usize = self
            .jobs
            .iter()
            .map(|it| codec.pack(&it.payload).len())
            .sum();
        (ms, packed as f64 / self.jobs.len() as f64)
    }

    fn payload_bytes(&self) -> f64 {
        let sum: usize = self.jobs.iter().map(|it| it.payload.len()).sum();
        sum as f64 / self.jobs.len() as f64
    }
}

/// Bytes of a job's slot in a page, on average, the end of the page included that is none.
fn slots(payloads: impl ExactSizeIterator<Item = usize>, step: usize) -> f64 {
    let count = payloads.len() as f64;
    let slot = |len| {
        let size = usize::next_multiple_of(HEADER + jobs::ID_BYTES + len, step);
        PAGE as f64 / (PAGE / size) as f64
    };
    payloads.map(slot).sum::<f64>() / count
}

fn us(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

/// What is packed: the payload of one job, or of many all that stands in a page, the words of a kind together.
fn block(jobs: &[Job]) -> Vec<u8> {
    if let [job] = jobs {
        return job.payload.clone();
    }
    let mut bytes = Vec::new();
    for job in jobs {
        bytes.extend_from_slice(&job.due.to_le_bytes());
        bytes.extend_from_slice(&job.seq.to_le_bytes());
    }
    jobs.iter().for_each(|job| bytes.extend_from_slice(&job.id));
    bytes.extend(payloads(jobs));
    bytes
}

/// Lengths, then texts.
fn payloads(jobs: &[Job]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for job in jobs {
        bytes.extend_from_slice(&(job.payload.len() as u16).to_le_bytes());
    }
    jobs.iter()
        .for_each(|job| bytes.extend_from_slice(&job.payload));
    bytes
}

const HEAD: [&str; 8] = [
    "jobs packed together",
    "by",
    "packed, bytes per job",
    "memory per job, whole queue",
    "less",
    "less, slots in steps of 8",
    "us to pack a job",
    "us to unpack it, or one of its block",
];

type Cells = [String; HEAD.len()];

fn cells(bench: &Bench, it: &Measured) -> Cells {
    let less = |bytes: f64| format!("{:.2}x", bench.plain / bytes);
    [
        it.together.to_string(),
        it.name.clone(),
        format!("{:.0}", it.packed_bytes),
        format!("{:.0}", it.bytes_per_job),
        less(it.bytes_per_job),
        it.fine.map_or(String::new(), less),
        format!("{:.2}", it.pack_us),
        format!("{:.2}; {:.1}", it.unpack_us, it.block_us),
    ]
}

fn report(about: &str, bench: &Bench, measured: &[Measured], lessons: &[(f64, f64)]) {
    let mut rows: Vec<Cells> = vec![HEAD.map(str::to_owned)];
    let mut plain: Cells = Default::default();
    (plain[1], plain[3]) = ("nothing".into(), format!("{:.0}", bench.plain));
    rows.push(plain);
    rows.extend(measured.iter().map(|it| cells(bench, it)));
    let mut how = format!(
        "{} jobs, ids of 16 bytes, JSON of {:.0} on average, due in an hour to a day; index and schedule of a job take {:.0} bytes",
        bench.jobs.len(),
        bench.payload_bytes(),
        bench.beside,
    );
    for ((samples, bytes), (ms, packed)) in LESSONS.iter().zip(lessons) {
        let size = bytes >> 10;
        let _ = write!(
            how,
            "; {size} KB learnt from {samples} jobs in {ms:.0} ms: {packed:.1} bytes each"
        );
    }
    println!("{about}\n{how}\n");
    rows.iter().for_each(|row| println!("{}", row.join(" | ")));
    keep(about, &how, &rows);
}

fn keep(about: &str, how: &str, rows: &[Cells]) {
    let mut json = String::new();
    let lines: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    let _ = write!(
        json,
        "{{\"machine\": {about:?}, \"how\": {how:?}, \"rows\": [\n{}\n]}}\n",
        lines.join(",\n")
    );
    let Some(folder) = env::var_os("DQ_BENCH_OUT") else {
        return;
    };
    let path = std::path::Path::new(&folder).join("compress.json");
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, json));
    if let Err(error) = written {
        eprintln!("{}: {error}", path.display());
        process::exit(1);
    }
    println!("\nThe same: {}", path.display());
}
