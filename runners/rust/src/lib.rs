//! A small reader and writer of JSON, so that the runner needs no crate. Numbers stay the text that they were written as.

use std::fmt;

/// How deep values may nest: a reader that calls itself must not use up the stack.
const DEEPEST: usize = 256;

#[derive(Clone, Debug)]
pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn parse(text: &str) -> Result<Json, String> {
        let mut reader = Reader {
            bytes: text.as_bytes(),
            text,
            at: 0,
        };
        let value = reader.value(0)?;
        reader.blank();
        if reader.at < text.len() {
            return Err(format!("something follows the value at byte {}", reader.at));
        }
        Ok(value)
    }

    /// The last value of a key, as most readers of JSON have it.
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields
                .iter()
                .rev()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn list(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            _ => &[],
        }
    }

    pub fn fields(&self) -> &[(String, Json)] {
        match self {
            Json::Object(fields) => fields,
            _ => &[],
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Json::Null => true,
            Json::Text(text) => text.is_empty(),
            Json::List(items) => items.is_empty(),
            Json::Object(fields) => fields.is_empty(),
            _ => false,
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_string())
    }
}

/// An object of these fields.
pub fn object(fields: Vec<(&str, Json)>) -> Json {
    Json::Object(
        fields
            .into_iter()
            .map(|(name, value)| (name.to_string(), value))
            .collect(),
    )
}

impl fmt::Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Json::Null => write!(out, "null"),
            Json::Bool(value) => write!(out, "{value}"),
            Json::Number(digits) => write!(out, "{digits}"),
            Json::Text(text) => quote(out, text),
            Json::List(items) => {
                write!(out, "[")?;
                for (place, item) in items.iter().enumerate() {
                    write!(out, "{}{item}", if place > 0 { "," } else { "" })?;
                }
                write!(out, "]")
            }
            Json::Object(fields) => {
                write!(out, "{{")?;
                for (place, (name, value)) in fields.iter().enumerate() {
                    write!(out, "{}", if place > 0 { "," } else { "" })?;
                    quote(out, name)?;
                    write!(out, ":{value}")?;
                }
                write!(out, "}}")
            }
        }
    }
}

fn quote(out: &mut fmt::Formatter, text: &str) -> fmt::Result {
    write!(out, "\"")?;
    for character in text.chars() {
        match character {
            '"' => write!(out, "\\\"")?,
            '\\' => write!(out, "\\\\")?,
            '\n' => write!(out, "\\n")?,
            control if (control as u32) < 32 => write!(out, "\\u{:04x}", control as u32)?,
            other => write!(out, "{other}")?,
        }
    }
    write!(out, "\"")
}

struct Reader<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn blank(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> u8 {
        *self.bytes.get(self.at).unwrap_or(&0)
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        self.blank();
        if self.peek() != byte {
            return Err(format!("{:?} is missing at byte {}", byte as char, self.at));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        if depth > DEEPEST {
            return Err("it nests too deeply".to_string());
        }
        self.blank();
        for (word, value) in [
            ("null", Json::Null),
            ("true", Json::Bool(true)),
            ("false", Json::Bool(false)),
        ] {
            if self.bytes[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        match self.peek() {
            b'"' => self.string().map(Json::Text),
            b'[' => self.items(b']', |reader| reader.value(depth + 1)).map(Json::List),
            b'{' => {
                let field = |reader: &mut Self| {
                    reader.blank();
                    let name = reader.string()?;
                    reader.expect(b':')?;
                    Ok((name, reader.value(depth + 1)?))
                };
                self.items(b'}', field).map(Json::Object)
            }
            _ => self.number(),
        }
    }

    fn items<T>(&mut self, close: u8, item: impl Fn(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        self.at += 1;
        let mut found = Vec::new();
        self.blank();
        if self.peek() == close {
            self.at += 1;
            return Ok(found);
        }
        loop {
            found.push(item(self)?);
            self.blank();
            match self.peek() {
                b',' => self.at += 1,
                byte if byte == close => {
                    self.at += 1;
                    return Ok(found);
                }
                _ => {
                    return Err(format!(
                        "a list or an object goes on in no legal way at byte {}",
                        self.at
                    ))
                }
            }
        }
    }

    fn number(&mut self) -> Result<Json, String> {
        let start = self.at;
        while matches!(self.peek(), b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') {
            self.at += 1;
        }
        let digits = &self.text[start..self.at];
        let first = digits.trim_start_matches('-');
        let legal = first.starts_with(|c: char| c.is_ascii_digit())
            && !(first.len() > 1 && first.starts_with('0') && first.as_bytes()[1].is_ascii_digit());
        if !legal || digits.starts_with("--") || digits.ends_with('.') || digits.parse::<f64>().is_err() {
            return Err(format!("no value begins at byte {start}"));
        }
        Ok(Json::Number(digits.to_string()))
    }

    fn string(&mut self) -> Result<String, String> {
        self.expect(b'"')?;
        let mut found = String::new();
        loop {
            let start = self.at;
            while !matches!(self.peek(), b'"' | b'\\' | 0..=31) {
                self.at += 1;
            }
            found.push_str(&self.text[start..self.at]);
            match self.peek() {
                b'"' => {
                    self.at += 1;
                    return Ok(found);
                }
                b'\\' => found.push(self.escape()?),
                _ => {
                    return Err(format!(
                        "a string does not end, or holds a control character, at byte {}",
                        self.at
                    ))
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        self.at += 2;
        Ok(match self.bytes.get(self.at - 1) {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(&byte @ (b'"' | b'\\' | b'/')) => byte as char,
            Some(b'u') => {
                let first = self.hexadecimal()?;
                let mut code = first;
                if (0xd800..0xdc00).contains(&first) && self.bytes[self.at..].starts_with(b"\\u") {
                    self.at += 2;
                    let second = self.hexadecimal()?;
                    if (0xdc00..0xe000).contains(&second) {
                        code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                    } else {
                        self.at -= 6;
                    }
                }
                char::from_u32(code).unwrap_or('\u{fffd}') // half of a pair alone
            }
            _ => return Err(format!("there is no such escape at byte {}", self.at - 2)),
        })
    }

    fn hexadecimal(&mut self) -> Result<u32, String> {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or("");
        if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(format!("four hexadecimal digits are missing at byte {}", self.at));
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|error| error.to_string())
    }
}
