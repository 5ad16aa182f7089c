use super::*;

#[tokio::test]
async fn an_ndjson_export_has_a_header_an_object_per_pet_and_an_end() {
    let (file, digest) = export(&two_pets(), FileFormat::Ndjson).await;
    let expected = format!(
        r#"{{"animalStore":{{"exportedAt":"2026-11-22T17:00:00.000000Z","kind":"pets","version":1}}}}
{{"id":1,"name":"Rex","categoryId":1,"createdAt":"1970-01-01T00:00:00.000000Z"}}
{{"id":7,"name":"\"a\\b\",猫 ","categoryId":-2,"status":"sold","createdAt":"2026-11-22T17:00:00.123456Z"}}
{{"end":{{"pets":2,"sha256":"{digest}"}}}}
"#
    );
    assert_eq!(String::from_utf8(file).unwrap(), expected);
}

#[tokio::test]
async fn a_csv_export_has_a_header_a_row_per_pet_and_an_end() {
    let (file, digest) = export(&two_pets(), FileFormat::Csv).await;
    let expected = format!(
        r#"#animal-store pets version=1 exportedAt=2026-11-22T17:00:00.000000Z
id,name,categoryId,status,createdAt
1,Rex,1,,1970-01-01T00:00:00.000000Z
7,"""a\b"",猫 ",-2,sold,2026-11-22T17:00:00.123456Z
#end pets=2 sha256={digest}
"#
    );
    assert_eq!(String::from_utf8(file).unwrap(), expected);
}

#[tokio::test]
async fn an_empty_export_is_complete() {
    for format in FORMATS {
        let (file, _) = export(&[], format).await;
        assert_eq!(read(&file, format, true).unwrap(), []);
    }
}

#[tokio::test]
async fn an_error_of_the_disk_is_returned_at_the_end_at_the_latest() {
    /// A disk without space.
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for format in FORMATS {
        let mut sink = format.create(Box::new(Full), now()).unwrap();
        let digest = export(&[], format).await.1;
        let error = sink.write(&two_pets()).and_then(|()| sink.finish(2, digest)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(4)))]

    #[test]
    fn every_pet_survives_both_formats_exactly(exported in any_pets()) {
        let digests = FORMATS.map(|format| run(transfer(&exported, format)));
        prop_assert_eq!(digests[0], digests[1]);
    }
}

/// Exports and imports pets, and returns their digest.
async fn transfer(exported: &[StoredPet], format: FileFormat) -> PetsDigest {
    let (file, digest) = export(exported, format).await;
    let target = storage(&[]).await;
    let (imported, refused) = import(&target, &file, format, KEEP_IDS).await;
    assert_eq!(imported.expect("import").added, exported.len() as u64, "{refused:?}");
    assert_eq!(pets(&target).await, exported);
    digest
}
