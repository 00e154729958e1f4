//! What compresses: two libraries, with and without a dictionary of the queue's own jobs.

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::from_samples;
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{CParameter, DParameter, FrameFormat};

/// Of a dictionary, unless something else is asked for.
pub const DICTIONARY_BYTES: usize = 32 << 10;

pub trait Codec {
    fn pack(&mut self, text: &[u8]) -> Vec<u8>;
    fn unpack(&mut self, packed: &[u8], len: usize) -> Vec<u8>;
}

pub struct Zstd<'a> {
    compressor: Compressor<'a>,
    decompressor: Decompressor<'a>,
}

impl Zstd<'static> {
    /// Frames without what a file needs: magic number, checksum, length, the dictionary's number.
    pub fn new(level: i32, dictionary: Option<&[u8]>) -> Zstd<'static> {
        let (mut compressor, mut decompressor) = match dictionary {
            None => (Compressor::new(level), Decompressor::new()),
            Some(bytes) => {
                // For the whole run.
                let encoder = Box::leak(Box::new(EncoderDictionary::copy(bytes, level)));
                let decoder = Box::leak(Box::new(DecoderDictionary::copy(bytes)));
                (
                    Compressor::with_prepared_dictionary(encoder),
                    Decompressor::with_prepared_dictionary(decoder),
                )
            }
        };
        let parameters = [
            CParameter::Format(FrameFormat::Magicless),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
        ];
        let compressor_is = compressor.as_mut().expect("a compressor");
        for parameter in parameters {
            compressor_is
                .set_parameter(parameter)
                .expect("a parameter of the library");
        }
        let decompressor_is = decompressor.as_mut().expect("a decompressor");
        let parameter = DParameter::Format(FrameFormat::Magicless);
        decompressor_is
            .set_parameter(parameter)
            .expect("a parameter of the library");
        Zstd {
            compressor: compressor.expect("a compressor"),
            decompressor: decompressor.expect("a decompressor"),
        }
    }
}

impl Codec for Zstd<'_> {
    fn pack(&mut self, text: &[u8]) -> Vec<u8> {
        self.compressor
            .compress(text)
            .expect("text can be compressed")
    }

    fn unpack(&mut self, packed: &[u8], len: usize) -> Vec<u8> {
        self.decompressor
            .decompress(packed, len)
            .expect("what was compressed")
    }
}

pub struct Lz4 {
    dictionary: Vec<u8>,
}

impl Lz4 {
    pub fn new(dictionary: Option<&[u8]>) -> Lz4 {
        Lz4 {
            dictionary: dictionary.unwrap_or_default().to_vec(),
        }
    }
}

impl Codec for Lz4 {
    fn pack(&mut self, text: &[u8]) -> Vec<u8> {
        match &self.dictionary[..] {
            [] => lz4_flex::block::compress(text),
            dictionary => lz4_flex::block::compress_with_dict(text, dictionary),
        }
    }

    fn unpack(&mut self, packed: &[u8], len: usize) -> Vec<u8> {
        let unpacked = match &self.dictionary[..] {
            [] => lz4_flex::block::decompress(packed, len),
            dictionary => lz4_flex::block::decompress_with_dict(packed, len, dictionary),
        };
        unpacked.expect("what was compressed")
    }
}

/// What most of these have in common.
pub fn trained(samples: &[Vec<u8>], bytes: usize) -> Vec<u8> {
    from_samples(samples, bytes).expect("enough samples")
}

/// The same for a library that has no training: the texts themselves, as many as fit.
pub fn joined(samples: &[Vec<u8>]) -> Vec<u8> {
    let mut all = samples.concat();
    all.truncate(DICTIONARY_BYTES);
    all
}
