//! The configuration file as it is written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::IgnoredAny;
use serde::Deserialize;
use toml::Spanned;

use crate::inbound::tokens::Verb;

/// Other sections are of other commands.
#[derive(Deserialize)]
pub struct Whole {
    pub http: Option<File>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct File {
    /// The program has put them before those of the command line.
    pub options: Option<IgnoredAny>,
    #[serde(default)]
    pub allow: Vec<Spanned<String>>,
    pub ca_file: Option<Spanned<PathBuf>>,
    pub client_cert: Option<Spanned<PathBuf>>,
    pub client_key: Option<Spanned<PathBuf>>,
    pub proxy: Option<Spanned<String>>,
    pub host_concurrency: Option<Spanned<usize>>,
    pub host_rate: Option<Spanned<f64>>,
    pub break_after: Option<Spanned<usize>>,
    pub break_for: Option<Spanned<f64>>,
    #[serde(default)]
    pub hosts: BTreeMap<String, Spanned<FileHost>>,
    #[serde(default)]
    pub queue: Vec<FileQueue>,
    #[serde(default)]
    pub token: Vec<FileToken>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileQueue {
    pub name: Spanned<String>,
    pub url: Spanned<String>,
    pub method: Option<Spanned<String>>,
    pub concurrency: Option<Spanned<usize>>,
    pub timeout: Option<Spanned<f64>>,
    pub lease: Option<Spanned<f64>>,
    #[serde(default)]
    pub backoff: Vec<Spanned<f64>>,
    pub fatal: Option<Vec<Spanned<u16>>>,
    pub retry_after_max: Option<Spanned<f64>>,
    #[serde(default)]
    pub secrets: Vec<Spanned<String>>,
    #[serde(default)]
    pub headers: BTreeMap<String, Spanned<String>>,
    pub content_type: Option<Spanned<String>>,
    #[serde(default)]
    pub recurring: bool,
    #[serde(default)]
    pub http2: bool,
    #[serde(default)]
    pub keep_answers: bool,
    #[serde(default)]
    pub group: Vec<FileGroup>,
}

/// A receiver of a group. What it leaves out is taken from the queue.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileGroup {
    pub name: Spanned<String>,
    pub url: Option<Spanned<String>>,
    pub secrets: Option<Vec<Spanned<String>>>,
    pub headers: Option<BTreeMap<String, Spanned<String>>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub enum FileHost {
    Concurrency(usize),
    #[serde(rename_all = "kebab-case")]
    Limits {
        concurrency: Option<usize>,
        rate: Option<f64>,
    },
}

/// Who may add jobs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileToken {
    pub name: Spanned<String>,
    pub hash: Spanned<String>,
    pub queues: Vec<String>,
    pub verbs: Vec<Verb>,
    #[serde(default)]
    pub prefix: String,
    pub group: Option<Spanned<String>>,
    pub label: Option<Spanned<String>>,
    pub rate: Option<Spanned<f64>>,
    #[serde(default)]
    pub bounds: BTreeMap<String, Spanned<(i64, i64)>>,
}
