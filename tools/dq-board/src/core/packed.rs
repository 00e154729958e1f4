//! What the tabs receive, compressed once for all of them. A gzip stream is a head, blocks and a foot; blocks that
//! refer to nothing before them fit into any stream.

use std::sync::OnceLock;

use axum::body::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};

const HEAD: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// An empty block that is marked as the last.
const LAST: &[u8] = &[3, 0];

/// A piece of a stream, plain and as gzip.
pub struct Part {
    plain: Bytes,
    packed: OnceLock<(Bytes, Crc)>,
}

impl Part {
    pub fn new(plain: impl Into<Bytes>) -> Part {
        Part {
            plain: plain.into(),
            packed: OnceLock::new(),
        }
    }

    /// The piece as EventSource reads it. JSON has no line breaks.
    pub fn event(json: &str) -> Part {
        Part::new(format!("data: {json}\n\n"))
    }

    fn packed(&self) -> &(Bytes, Crc) {
        self.packed.get_or_init(|| {
            let mut crc = Crc::new();
            crc.update(&self.plain);
            (blocks(&self.plain).into(), crc)
        })
    }
}

fn blocks(plain: &[u8]) -> Vec<u8> {
    let mut packer = Compress::new(Compression::fast(), false);
    let mut packed = Vec::new();
    loop {
        packed.reserve(plain.len() / 8 + 64);
        let rest = &plain[packer.total_in() as usize..];
        // With memory for its output it cannot fail, and if some of that is left it is done.
        let _ = packer.compress_vec(rest, &mut packed, FlushCompress::Sync);
        if packed.len() < packed.capacity() && packer.total_in() as usize == plain.len() {
            return packed;
        }
    }
}

/// One visitor's stream.
pub enum Packing {
    Plain,
    Gzip(Crc),
}

impl Packing {
    pub fn new(gzip: bool) -> Packing {
        match gzip {
            true => Packing::Gzip(Crc::new()),
            false => Packing::Plain,
        }
    }

    pub fn head(&self) -> Bytes {
        match self {
            Packing::Plain => Bytes::new(),
            Packing::Gzip(_) => Bytes::from_static(HEAD),
        }
    }

    pub fn next(&mut self, part: &Part) -> Bytes {
        match self {
            Packing::Plain => part.plain.clone(),
            Packing::Gzip(all) => {
                let (packed, crc) = part.packed();
                all.combine(crc);
                packed.clone()
            }
        }
    }

    pub fn foot(&self) -> Bytes {
        match self {
            Packing::Plain => Bytes::new(),
            Packing::Gzip(crc) => {
                let numbers = [crc.sum().to_le_bytes(), crc.amount().to_le_bytes()];
                [LAST, numbers.as_flattened()].concat().into()
            }
        }
    }
}

/// By the header Accept-Encoding.
pub fn takes_gzip(accepted: &str) -> bool {
    accepted.split(',').any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").map(str::trim);
        let none = weight.is_some_and(|weight| weight.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !none
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    #[test]
    fn parts_in_any_stream_are_what_they_were() {
        let long: String = (0..100_000).map(|number| format!("{number} ")).collect();
        let noise: Vec<u8> = (0..70_000_u32)
            .map(|it| (it.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        let parts: Vec<Part> = [long.clone().into_bytes(), Vec::new(), noise]
            .into_iter()
            .map(Part::new)
            .collect();
        for order in [vec![0, 1, 2], vec![2, 0, 0], vec![1], vec![]] {
            let mut packing = Packing::new(true);
            let mut stream = packing.head().to_vec();
            let mut plain = Vec::new();
            for index in order {
                stream.extend(packing.next(&parts[index]));
                plain.extend_from_slice(&parts[index].plain);
            }
            stream.extend(packing.foot());
            let mut read = Vec::new();
            GzDecoder::new(&stream[..]).read_to_end(&mut read).unwrap();
            assert!(read == plain);
        }
        let mut packing = Packing::new(true);
        assert!(packing.next(&parts[0]).len() < long.len() / 2);
        assert_eq!(Packing::new(false).next(&parts[0]), long.as_bytes());
    }

    #[test]
    fn who_takes_gzip() {
        for takes in ["gzip", "br, GZIP;q=0.5", "deflate,gzip ; q=1"] {
            assert!(takes_gzip(takes), "{takes}");
        }
        for not in ["", "br", "gzip;q=0", "gzip;q=0.0, br", "x-gzipped"] {
            assert!(!takes_gzip(not), "{not}");
        }
    }
}
