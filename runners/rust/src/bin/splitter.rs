//! A splitter as many programs have one, for `run`: one block of thinking, the rest is the answer. It fails the cases it should.

use asides_cases::{object, Json};

fn main() {
    for line in std::io::stdin().lines() {
        let case = Json::parse(&line.expect("a line of text")).expect("a line of JSON");
        let chunks = case.get("chunks").map(Json::list).unwrap_or_default();
        let mut text: String = chunks.iter().filter_map(Json::text).collect();
        let mut parts = vec![];
        if case.get("start").and_then(Json::text) == Some("thinking") && !text.contains("<think>") {
            text.insert_str(0, "<think>");
        }
        if let (Some(open), Some(close)) = (text.find("<think>"), text.find("</think>")) {
            if close > open {
                parts.push(object(vec![(
                    "thinking",
                    text[open + "<think>".len()..close].trim().into(),
                )]));
                text.replace_range(open..close + "</think>".len(), "");
            }
        }
        let answer = text.replacen("<|im_end|>", "", 1);
        if !answer.trim().is_empty() {
            parts.push(object(vec![("text", answer.trim().into())]));
        }
        println!("{}", object(vec![("parts", Json::List(parts))]));
    }
}
