//! Tables of a page.

/// The rows of the table below a heading.
pub fn rows<'a, const CELLS: usize>(page: &'a str, heading: &str) -> Vec<[&'a str; CELLS]> {
    let (_, section) = page.split_once(heading).expect(heading);
    let lines = section.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = lines.skip(1).take_while(|line| line.starts_with("| "));
    rows.map(|row| {
        assert!(!row.contains(['"', '\\']), "to be escaped: {row}");
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        cells
            .try_into()
            .unwrap_or_else(|_| panic!("not {CELLS} cells: {row}"))
    })
    .collect()
}

/// What stands in backquotes in the first cells of the table below a heading, each up to its first blank.
pub fn first_words<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let (_, behind) = page.split_once(heading).expect(heading);
    let section = behind.split("\n## ").next().unwrap_or(behind);
    let lines = section.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = lines.skip(1).take_while(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row[2..].split(" | ").next());
    let quoted = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    quoted.filter_map(|text| text.split(' ').next()).collect()
}

/// Writes rows into the section below a heading: each in place of the one that begins alike, or else behind the one
/// before it.
pub fn put(page: &mut String, heading: &str, rows: impl IntoIterator<Item = (String, String)>) {
    let from = page.find(heading).expect(heading) + heading.len();
    let to = page[from..]
        .find("\n## ")
        .map_or(page.len(), |at| from + at);
    let mut lines: Vec<String> = page[from..to].split('\n').map(str::to_owned).collect();
    let mut before = None;
    for (begins, row) in rows {
        let at = match lines.iter().position(|line| line.starts_with(&begins)) {
            Some(at) => at,
            None => {
                let at = 1 + before.expect("the first row is there");
                lines.insert(at, String::new());
                at
            }
        };
        lines[at] = row;
        before = Some(at);
    }
    page.replace_range(from..to, &lines.join("\n"));
}
