use super::*;

fn three_pets() -> Vec<StoredPet> {
    [two_pets(), vec![stored(12, "Tom", 34, None, 5)]].concat()
}

#[tokio::test]
async fn an_export_that_is_cut_anywhere_does_not_pass_as_complete() {
    for format in FORMATS {
        let (file, _) = export(&three_pets(), format).await;
        for length in 0..file.len() - 1 {
            let Ok(mut source) = format.open(Box::new(io::Cursor::new(file[..length].to_vec()))) else { continue };
            let mut found = Vec::new();
            let end = loop {
                match source.next_line(true) {
                    Ok(Some(line)) => found.push(line.pet),
                    end => break end,
                }
            };
            let is_foreign = length < file.split(|byte| *byte == b'\n').next().unwrap().len();
            assert!(matches!(end, Err(PetFileError::Incomplete(_))) || is_foreign, "{format:?} {length} {end:?}");
            let complete = three_pets().into_iter().map(|stored| Ok(stored.pet.id()));
            let found = found.into_iter().map(|pet| pet.map(|pet| pet.id.unwrap()));
            assert!(
                is_foreign || found.zip(complete).all(|(found, complete)| found == complete),
                "{format:?} {length}"
            );
        }
    }
}

#[tokio::test]
async fn an_export_with_another_pet_or_with_more_lines_is_refused_at_its_end() {
    for format in FORMATS {
        let file = String::from_utf8(export(&three_pets(), format).await.0).unwrap();
        let lines: Vec<_> = file.lines().collect();
        let missing = [&lines[..lines.len() - 2], &lines[lines.len() - 1..]].concat().join("\n");
        let bad = file.replacen(r#""Rex""#, "1", 1).replacen("1,Rex,", "1,,", 1);
        for (changed, problem) in [
            (file.replacen("Rex", "Max", 1), "its digest does not match its pets"),
            (file.replacen("1970", "1971", 1), "its digest does not match its pets"),
            (bad, "it has 2 valid pets instead of 3"),
            (missing, "it has 2 valid pets instead of 3"),
            (format!("{file}\n{}", lines[lines.len() - 2]), "lines follow its last line"),
        ] {
            let error = read(changed.as_bytes(), format, false).unwrap_err();
            assert!(matches!(&error, PetFileError::Incomplete(found) if found == problem), "{error} {changed}");
        }
    }
}

#[tokio::test]
async fn an_import_of_a_cut_file_is_resumed_with_the_complete_file() {
    for format in FORMATS {
        let exported: Vec<_> = (1..4_000).map(|id| stored(id, "Rex", id, None, id)).collect();
        let (file, _) = export(&exported, format).await;
        let target = storage(&[]).await;
        let half_a_line = file.len() * 9 / 10;
        assert!(half_a_line > 64 * 1024 && file[half_a_line - 1] != b'\n');
        let (cut, refused) = import(&target, &file[..half_a_line], format, ImportOptions::default()).await;
        let cut = cut.unwrap_err().done;
        assert_eq!((cut.refused, &refused[..]), (0, &[][..]));

        let resume = ImportOptions { resume: true, ..ImportOptions::default() };
        let resumed = import(&target, &file, format, resume).await.0.unwrap();
        assert_eq!((resumed.resumed, resumed.lines()), (cut.added, 3_999));
        assert_eq!(pets(&target).await, exported);
    }
}

#[tokio::test]
async fn newer_files_and_backups_are_refused_at_once() {
    for format in FORMATS {
        let file = String::from_utf8(export(&two_pets(), format).await.0).unwrap();
        let newer = file.replacen(r#""version":1"#, r#""version":2"#, 1).replacen("version=1", "version=2", 1);
        assert!(matches!(read(newer.as_bytes(), format, false), Err(PetFileError::NewerVersion(2))));
        let backup =
            file.replacen(r#""kind":"pets""#, r#""kind":"backup""#, 1).replacen("store pets", "store backup", 1);
        let error = read(backup.as_bytes(), format, false).unwrap_err();
        assert!(matches!(&error, PetFileError::Format(problem) if problem.contains("restore")), "{error}");
    }
}
