//! LZF, with which servers compress strings in an RDB: runs of bytes, and references to earlier ones.

/// Returns the bytes if there are exactly `len`.
pub fn decompress(packed: &[u8], len: usize) -> Option<Vec<u8>> {
    /// The most bytes that one byte of a reference stands for.
    const GROWTH: usize = 264;
    if len / GROWTH > packed.len() {
        return None;
    }
    let mut out = Vec::with_capacity(len);
    let mut bytes = packed.iter().copied();
    while let Some(head) = bytes.next() {
        let head = usize::from(head);
        if head < 32 {
            for _ in 0..=head {
                out.push(bytes.next()?);
            }
            continue;
        }
        let mut run = head >> 5;
        if run == 7 {
            run += usize::from(bytes.next()?);
        }
        let back = ((head & 31) << 8) + usize::from(bytes.next()?) + 1;
        let from = out.len().checked_sub(back)?;
        for at in from..from + run + 2 {
            out.push(out[at]);
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_references() {
        assert_eq!(decompress(&[2, b'a', b'b', b'c'], 3).unwrap(), b"abc");
        // Three bytes from one back, which overlap.
        assert_eq!(decompress(&[0, b'a', 1 << 5, 0], 4).unwrap(), b"aaaa");
        assert_eq!(
            decompress(&[0, b'a', 7 << 5, 1, 0], 11).unwrap(),
            b"aaaaaaaaaaa"
        );
        assert_eq!(
            decompress(&[0, b'a', 1 << 5, 1], 4),
            None,
            "before the beginning"
        );
        assert_eq!(decompress(&[2, b'a', b'b'], 3), None, "cut");
        assert_eq!(decompress(&[0, b'a'], usize::MAX), None);
    }
}
