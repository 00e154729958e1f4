//! Jobs as an application adds them: JSON of about 200 bytes, of four kinds, with what differs from one to the other.

const FIRST_NAMES: [&str; 40] = [
    "anna", "ben", "carla", "david", "emma", "felix", "grace", "hugo", "irene", "james", "karen",
    "liam", "maria", "noah", "olivia", "paul", "quentin", "rosa", "sofia", "thomas", "ursula",
    "victor", "wanda", "xavier", "yara", "zoe", "ahmed", "bianca", "chen", "dmitri", "elena",
    "fatima", "goran", "hana", "ivan", "jonas", "keiko", "luca", "mei", "nadia",
];
const LAST_NAMES: [&str; 40] = [
    "smith", "mueller", "garcia", "rossi", "martin", "silva", "jensen", "novak", "kowalski",
    "ivanov", "tanaka", "kim", "nguyen", "singh", "khan", "ali", "cohen", "levi", "haddad",
    "okafor", "mensah", "diallo", "brown", "jones", "taylor", "wilson", "clark", "lewis", "walker",
    "young", "king", "wright", "lopez", "hill", "green", "adams", "baker", "nelson", "carter",
    "mitchell",
];
const DOMAINS: [&str; 8] = [
    "gmail.com",
    "outlook.com",
    "yahoo.com",
    "icloud.com",
    "example.org",
    "web.de",
    "proton.me",
    "orange.fr",
];
const LOCALES: [&str; 8] = [
    "en-US", "de-DE", "fr-FR", "es-ES", "it-IT", "pt-BR", "ja-JP", "pl-PL",
];
const CURRENCIES: [&str; 5] = ["EUR", "USD", "GBP", "JPY", "PLN"];

pub const ID_BYTES: usize = 16;

/// One job: its id, its payload, and when it is due.
pub struct Job {
    pub id: [u8; ID_BYTES],
    pub payload: Vec<u8>,
    pub due: u64,
    /// In the order of adding.
    pub seq: u64,
}

/// A generator of numbers, the same in every run (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }
}

/// Job `number`, added at `start_ms` and a little later each, due in an hour to a day.
pub fn job(number: u64, start_ms: u64) -> Job {
    let random = &mut Random(number.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let added = start_ms + number / 10;
    let id = format!("{:016x}", random.next());
    Job {
        payload: payload(number, added, random).into_bytes(),
        id: id.into_bytes().try_into().expect("16 digits"),
        due: added + 3_600_000 + random.below(23 * 3_600_000),
        seq: number,
    }
}

fn payload(number: u64, added: u64, random: &mut Random) -> String {
    let email = format!(
        "{}.{}{}@{}",
        random.of(&FIRST_NAMES),
        random.of(&LAST_NAMES),
        random.below(1000),
        random.of(&DOMAINS)
    );
    let (customer, order) = (random.below(2_000_000), 70_000_000 + number);
    let amount = format!("{}.{:02}", random.below(500), random.below(100));
    let (currency, locale) = (random.of(&CURRENCIES), random.of(&LOCALES));
    let (key, at) = (random.next(), instant(added));
    match random.below(4) {
        0 => format!(
            r#"{{"type":"order.reminder","order":{order},"customer":{{"id":{customer},"email":"{email}","locale":"{locale}"}},"total":{{"amount":{amount},"currency":"{currency}"}},"created":"{at}"}}"#
        ),
        1 => format!(
            r#"{{"type":"payment.retry","payment_id":"pay_{key:016x}","order":{order},"amount":{amount},"currency":"{currency}","email":"{email}","requested":"{at}","retries":{}}}"#,
            random.below(5)
        ),
        2 => format!(
            r#"{{"type":"webhook.deliver","url":"https://hooks.shop-{}.example.com/v2/orders","event":"order.paid","event_id":"evt_{key:016x}","data":{{"order":{order},"total":{amount}}},"at":"{at}"}}"#,
            random.below(5000)
        ),
        _ => format!(
            r#"{{"type":"mail.send","template":"trial_ends_soon","to":"{email}","lang":"{locale}","vars":{{"user_id":{customer},"price":"{amount} {currency}"}},"trace":"{key:016x}","at":"{at}"}}"#
        ),
    }
}

/// As text; all of a run are on one day or the next.
fn instant(ms: u64) -> String {
    let (seconds, day) = (ms / 1000 % 86_400, 23 + ms / 86_400_000 % 7);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!(
        "2026-11-{day}T{hours:02}:{minutes:02}:{:02}.{:03}Z",
        seconds % 60,
        ms % 1000
    )
}
