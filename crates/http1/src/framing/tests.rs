use super::*;

/// Asserts how many bytes are accepted, whether they arrive together or one by one, and that nothing follows.
#[track_caller]
fn assert_accepted(body: &[u8], expected: usize) {
    let text = String::from_utf8_lossy(&body[..body.len().min(100)]);
    let mut whole = Framing::default();
    assert_eq!(whole.accept(body), expected, "{text:?}");
    assert!(whole.is_over(), "{text:?}");
    let mut framing = Framing::default();
    let mut accepted = 0;
    for end in 1..=body.len() {
        accepted += framing.accept(&body[accepted..end]);
    }
    assert_eq!(accepted, expected, "{text:?}");
}

#[test]
fn a_body_of_the_grammar_is_accepted_to_its_end() {
    for body in [
        &b"0\r\n\r\n"[..],
        b"0000000000000000\r\n\r\n",
        b"3\r\nabc\r\n00\r\n\r\n",
        b"0000000000000003\r\nabc\r\n0\r\n\r\n",
        b"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n",
        b"4\r\n\r\n\r\n\r\n0\r\n\r\n",
        b"1;a\r\nx\r\n0;b\r\n\r\n",
        b"1;a=b;c;d=\"e\"\r\nx\r\n0\r\n\r\n",
        b"1 ; a = b\t;\tc\t=\t\"d\" ;e\r\nx\r\n0\r\n\r\n",
        b"1;!#$%&'*+-.^_`|~=!#$%&'*+-.^_`|~\r\nx\r\n0\r\n\r\n",
        b"1;a=\"\"\r\nx\r\n0\r\n\r\n",
        b"1;a=\"; \t\xe9\\\"\\\\\\a\"\r\nx\r\n0\r\n\r\n",
        b"1;a='b'\r\nx\r\n0\r\n\r\n",
        b"0\r\nA:\r\n\r\n",
        b"0\r\nA: b c\t\r\nB:\xe9:;\"\r\nContent-Length: 9\r\n\r\n",
    ] {
        assert_accepted(&[body, b"0\r\n\r\n"].concat(), body.len());
    }
}

#[test]
fn a_line_outside_of_the_grammar_is_a_fault() {
    let sizes = [
        "\r\n",
        "\n",
        "g\r\n",
        " 1\r\n",
        "+1\r\n",
        "-1\r\n",
        "0x1\r\n",
        "1_0\r\n",
        "1 0\r\n",
        ";a\r\n",
        "1\n",
        "1\rx\r\n",
        "1\r\r\n",
        "1 \r\n",
        "1\t\r\n",
        "00000000000000000\r\n",
        "00000000000000001\r\n",
    ];
    let extensions = [
        "1;\r\n",
        "1; \r\n",
        "1;;a\r\n",
        "1;=a\r\n",
        "1;\"a\"\r\n",
        "1;a\n",
        "1;a\rb\r\n",
        "1;a \r\n",
        "1;a b\r\n",
        "1;a\"b\"\r\n",
        "1;a=\r\n",
        "1;a=;b\r\n",
        "1;a==b\r\n",
        "1;a=b \r\n",
        "1;a=b c\r\n",
        "1;a=b\"c\"\r\n",
        "1;a=\"b\r\n",
        "1;a=\"b\\\"\r\n",
        "1;a=\"b\\\r\n",
        "1;a=\"b\"c\r\n",
        "1;a=\"b\" \r\n",
        "1;a=\"\0\"\r\n",
        "1;a/b\r\n",
        "1;\u{e9}\r\n",
        "1;a\0\r\n",
        "1;a\u{7f}\r\n",
    ];
    let trailers = [
        "\nGET / HTTP/1.1\r\n",
        "\n\n",
        "\r\r\n",
        "\rGET / HTTP/1.1\r\n",
        " A: b\r\n",
        ": b\r\n",
        "A\r\n",
        "A : b\r\n",
        "A: b\n",
        "A: b\rB: c\r\n",
        "A: \0\r\n",
        "A: \u{1b}\r\n",
        "A: \u{7f}\r\n",
        "\u{e9}: b\r\n",
    ];
    // What is accepted, and what follows.
    for (accepted, rests) in [
        ("", &sizes[..]),
        ("", &extensions),
        ("1\r\nx", &["\n", "y\r\n", "0\r\n\r\n"]),
        ("1\r\nx\r\n", &["\r\n"]),
        ("0\r\n", &trailers),
        ("0\r\nA: b\r\n", &[" c\r\n", "\n"]),
    ] {
        for rest in rests {
            let body = format!("{accepted}{rest}0\r\n\r\n");
            assert_accepted(body.as_bytes(), accepted.len());
        }
    }
}

#[test]
fn a_body_has_at_most_16_kib_of_extensions_and_trailers() {
    let text = |bytes: usize| "a".repeat(bytes);
    let spaces = |bytes: usize| " ".repeat(bytes);
    let max = 16 * 1024;
    for bytes in [max, max + 1] {
        let is_valid = bytes == max;
        for (start, line) in [
            ("", format!("1;{}\r\n", text(bytes - 1))),
            ("", format!("1{};a\r\n", spaces(bytes - 2))),
            ("", format!("1;a=\"{}\"\r\n", spaces(bytes - 5))),
            ("0\r\n", format!("A:{}\r\n", text(bytes - 2))),
            (
                "1;abc\r\nx\r\n0\r\nA:b\r\n",
                format!("B:{}\r\n", text(bytes - 9)),
            ),
        ] {
            let body = format!("{start}{line}\n");
            let accepted = Framing::default().accept(body.as_bytes());
            let expected = start.len() + if is_valid { line.len() } else { 0 };
            // A chunk may have one byte of data.
            assert!(
                (expected..=expected + 1).contains(&accepted),
                "{start:?} {bytes}"
            );
        }
    }
    let chunks = "1;a\r\nx\r\n".repeat(max / 2);
    assert_accepted(format!("{chunks}0\r\n\r\n").as_bytes(), chunks.len() + 5);
    assert_accepted(format!("{chunks}0;a\r\n\r\n").as_bytes(), chunks.len());
}

#[test]
fn a_line_that_does_not_end_is_a_fault() {
    for start in ["", "0\r\n"] {
        let body = start.to_owned() + &"1".repeat(MAX_LINE_BYTES + 1);
        assert_accepted(body.as_bytes(), start.len());
    }
}

#[test]
fn the_largest_size_does_not_overflow() {
    let mut framing = Framing::default();
    assert_eq!(framing.accept(b"ffffffffffffffff\r\nabc"), 21);
    assert_eq!(framing.accept(&[0; 1000]), 1000);
    assert!(!framing.is_over());
}
