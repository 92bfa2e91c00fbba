//! New texts from old ones: cut, doubled, spliced, and peppered with words of the trade.

/// Makes inputs, the same ones for the same seed.
pub(crate) struct Mutator {
    state: u64,
    words: &'static [&'static str],
}

impl Mutator {
    pub(crate) fn new(seed: u64, words: &'static [&'static str]) -> Mutator {
        Mutator { state: seed, words }
    }

    /// One of the pool after a few changes, cut to a length in bytes.
    pub(crate) fn grow(&mut self, pool: &[String], bytes_max: usize) -> String {
        let mut letters: Vec<char> = self.pick(pool).chars().collect();
        for _ in 0..=self.below(4) {
            self.change(&mut letters, pool);
        }
        let mut text: String = letters.into_iter().collect();
        while bytes_max < text.len() {
            text.pop();
        }
        text
    }

    fn change(&mut self, letters: &mut Vec<char>, pool: &[String]) {
        let (from, to) = self.stretch(letters.len());
        match self.below(8) {
            0 => drop(letters.drain(from..to)),
            1 => {
                let doubled: Vec<char> = letters[from..to].to_vec();
                letters.splice(to..to, doubled);
            }
            2 | 3 => {
                let word = self.words[self.below(self.words.len())];
                letters.splice(from..from, word.chars());
            }
            4 => {
                let word = self.words[self.below(self.words.len())];
                letters.splice(from..to, word.chars());
            }
            5 => {
                let other: Vec<char> = self.pick(pool).chars().collect();
                let (start, end) = self.stretch(other.len());
                letters.splice(from..to, other[start..end].to_vec());
            }
            6 => {
                let letter = self.letter();
                letters.insert(from, letter);
            }
            _ => {
                if let Some(letter) = letters.get_mut(from) {
                    *letter = self.letter();
                }
            }
        }
    }

    fn letter(&mut self) -> char {
        const NASTY: [char; 16] = [
            '\0', '\n', '\r', '\t', '\u{feff}', '\u{202e}', 'İ', 'ß', '🕛', '"', '\\', '\'', '%', '-', '9',
            '\u{7f}',
        ];
        match self.below(3) {
            0 => NASTY[self.below(NASTY.len())],
            1 => char::from(b' ' + u8::try_from(self.below(95)).unwrap()),
            _ => char::from_u32(u32::try_from(self.below(0x2_0000)).unwrap()).unwrap_or('?'),
        }
    }

    fn pick<'a>(&mut self, pool: &'a [String]) -> &'a str {
        &pool[self.below(pool.len())]
    }

    fn stretch(&mut self, length: usize) -> (usize, usize) {
        let from = self.below(length + 1);
        // Mostly short: long cuts leave nothing to grow from.
        let to = (from + self.below(12)).min(length);
        (from, to)
    }

    fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        usize::try_from(bits % end.max(1) as u64).unwrap()
    }
}
