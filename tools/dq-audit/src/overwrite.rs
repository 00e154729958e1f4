//! Which keys one of the server's own commands overwrites, whatever they held: it may remove a
//! queue.

/// The keys among these arguments that the command overwrites. `name` is in upper case.
pub fn overwritten<'a>(name: &str, arguments: &'a [Vec<u8>]) -> Vec<&'a [u8]> {
    let at = |n: usize| arguments.get(n).map(Vec::as_slice).into_iter().collect();
    match name {
        "SET" | "SETEX" | "PSETEX" | "GETSET" | "SUNIONSTORE" | "SINTERSTORE" | "SDIFFSTORE"
        | "ZUNIONSTORE" | "ZINTERSTORE" | "ZDIFFSTORE" | "ZRANGESTORE" | "GEOSEARCHSTORE" => at(0),
        "BITOP" => at(1),
        "MSET" | "MSETNX" => arguments.iter().step_by(2).map(Vec::as_slice).collect(),
        "SORT" | "GEORADIUS" | "GEORADIUSBYMEMBER" => {
            let is_store = |word: &Vec<u8>| {
                word.eq_ignore_ascii_case(b"STORE") || word.eq_ignore_ascii_case(b"STOREDIST")
            };
            match arguments.iter().rposition(is_store) {
                Some(store) => at(store + 1),
                None => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(command: &str) -> Vec<String> {
        let mut words = command.split(' ').map(|word| word.as_bytes().to_vec());
        let name = words.next().unwrap();
        let arguments: Vec<_> = words.collect();
        let keys = overwritten(std::str::from_utf8(&name).unwrap(), &arguments);
        let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
        keys.into_iter().map(text).collect()
    }

    #[test]
    fn what_is_replaced() {
        assert_eq!(keys("SET a b"), ["a"]);
        assert_eq!(keys("MSET a 1 b 2"), ["a", "b"]);
        assert_eq!(keys("BITOP AND a b c"), ["a"]);
        assert_eq!(keys("SORT list BY x store to"), ["to"]);
        assert_eq!(keys("SORT list"), [""; 0]);
        assert_eq!(keys("LPUSH a b"), [""; 0]);
    }
}
