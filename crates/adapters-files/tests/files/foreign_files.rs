use super::*;

fn names(lines: &[PetLine]) -> Vec<(u64, &str)> {
    lines.iter().map(|line| (line.number, line.pet.as_ref().expect("a pet").pet.name().as_str())).collect()
}

#[test]
fn an_ndjson_file_needs_only_names_and_categories() {
    let file =
        "{\"name\":\"Rex\",\"categoryId\":1,\"owner\":{\"name\":\"x\"}}\r\n\n  \n{\"categoryId\":2,\"name\":\"Tom\"}";
    let lines = read(file.as_bytes(), FileFormat::Ndjson, false).unwrap();
    assert_eq!(names(&lines), [(1, "Rex"), (4, "Tom")]);
    assert!(lines.iter().all(|line| line.pet.as_ref().is_ok_and(|pet| pet.id.is_none() && pet.created_at.is_none())));
}

#[test]
fn a_csv_file_needs_only_the_columns_name_and_category_id() {
    let file = "owner,categoryId,name,note\r\nx,1,Rex,\"two\r\nlines, \"\"quoted\"\"\"\r\ny,2, Tom ,\r\n";
    let lines = read(file.as_bytes(), FileFormat::Csv, false).unwrap();
    assert_eq!(names(&lines), [(2, "Rex"), (4, " Tom ")]);
    assert_eq!(lines[1].pet.as_ref().unwrap().pet.category_id().get(), 2);

    let file = "name,note,categoryId\nRex,\"two\nlines\",1\n\n\nTom,,2";
    assert_eq!(names(&read(file.as_bytes(), FileFormat::Csv, false).unwrap()), [(2, "Rex"), (6, "Tom")]);
}

#[test]
fn every_column_may_be_given_in_any_order() {
    let file = "createdAt,status,name,id,categoryId\n2026-11-22T17:00:00Z,sold,Rex,7,1\n,,Tom,,2\n";
    let lines = read(file.as_bytes(), FileFormat::Csv, false).unwrap();
    let [rex, tom] = &lines[..] else { panic!("{lines:?}") };
    let (rex, tom) = (rex.pet.as_ref().unwrap(), tom.pet.as_ref().unwrap());
    assert_eq!(rex.pet.status(), Some(PetStatus::Sold));
    assert_eq!(rex.created_at.unwrap().micros(), 1_795_366_800_000_000);
    assert_eq!((tom.pet.status(), tom.created_at), (None, None));
    let ids: Vec<_> = read(file.as_bytes(), FileFormat::Csv, true).unwrap().into_iter().map(|line| line.pet).collect();
    assert_eq!(ids[0].as_ref().unwrap().id, PetId::parse(7).ok());
    assert_eq!(ids[1], Err("id is required".to_owned()));
}

#[test]
fn a_csv_file_without_a_required_column_is_refused() {
    for (file, column) in [
        ("", "name"),
        ("id,categoryId\n1,1\n", "name"),
        ("name\nRex\n", "categoryId"),
        ("name,categoryId,name\nRex,1,Tom\n", "name"),
        ("id,id,name,categoryId\n", "id"),
        ("Rex,1\n", "name"),
    ] {
        let error = read(file.as_bytes(), FileFormat::Csv, false).unwrap_err();
        assert_eq!(error.to_string(), format!("the file must have one column {column}"), "{file}");
    }
}

#[test]
fn a_byte_order_mark_is_skipped() {
    for (file, format) in [
        ("\u{feff}{\"name\":\"Rex\",\"categoryId\":1}\n", FileFormat::Ndjson),
        ("\u{feff}name,categoryId\nRex,1\n", FileFormat::Csv),
    ] {
        let lines = read(file.as_bytes(), format, false).unwrap();
        assert_eq!(names(&lines).iter().map(|(_, name)| *name).collect::<Vec<_>>(), ["Rex"], "{format:?}");
    }
}

#[test]
fn an_empty_ndjson_file_has_no_pets() {
    assert_eq!(read(b"", FileFormat::Ndjson, false).unwrap(), []);
}

#[test]
fn a_line_of_any_length_is_read_in_constant_memory() {
    let long = "x".repeat(3 << 20);
    let file = format!("{{\"name\":\"{long}\"}}\n{{\"name\":\"Rex\",\"categoryId\":1}}\n");
    let lines = read(file.as_bytes(), FileFormat::Ndjson, false).unwrap();
    assert_eq!(lines[0].pet, Err("the line must have at most 1 MiB".to_owned()));
    assert_eq!(names(&lines[1..]), [(2, "Rex")]);

    let file = format!("name,categoryId\n\"Rex,1\n{long}");
    let error = read(file.as_bytes(), FileFormat::Csv, false).unwrap_err();
    let PetFileError::Unreadable(cause) = error else { panic!("{error}") };
    assert!(cause.to_string().contains("quotation mark"), "{cause}");
}

#[test]
fn the_same_lines_have_the_same_digests() {
    for (format, file) in [
        (FileFormat::Ndjson, "{\"name\":\"Rex\",\"categoryId\":1}\n{\"name\":\"Tom\",\"categoryId\":2}\n"),
        (FileFormat::Csv, "name,categoryId\nRex,1\nTom,2\n"),
    ] {
        let digests = |file: &str| -> Vec<_> {
            read(file.as_bytes(), format, false).unwrap().into_iter().map(|line| line.digest).collect()
        };
        let original = digests(file);
        assert_eq!(digests(&file.replace("Tom", "Tim"))[0], original[0]);
        assert_ne!(digests(&file.replace("Tom", "Tim"))[1], original[1]);
        assert_ne!(digests(&file.replace("Rex", "Max"))[1], original[1]);
    }
    assert_ne!(
        read(b"name,categoryId\nab,1\n", FileFormat::Csv, false).unwrap()[0].digest,
        read(b"name,categoryId\na,b1\n", FileFormat::Csv, false).unwrap()[0].digest
    );
}

#[test]
fn a_file_is_identified_by_its_first_64_kib() {
    let id = |file: &[u8]| FileFormat::Ndjson.open(Box::new(io::Cursor::new(file.to_vec()))).unwrap().id();
    let file = vec![b'\n'; 70 * 1024];
    let with = |position: usize| {
        let mut changed = file.clone();
        changed[position] = b' ';
        id(&changed)
    };
    assert_eq!(with(64 * 1024), id(&file));
    assert_ne!(with(64 * 1024 - 1), id(&file));
    assert_ne!(id(&file[..100]), id(&file[..101]));
}

proptest! {
    #[test]
    fn no_file_causes_a_panic(file in any::<Vec<u8>>(), text in "[\\PC\\n\",#{}:]{0,200}") {
        for format in FORMATS {
            let _ = read(&file, format, true);
            let _ = read(text.as_bytes(), format, true);
            let _ = read(format!("name,categoryId\n{text}").as_bytes(), format, true);
        }
    }
}
