use super::*;

#[tokio::test]
async fn a_bad_line_is_reported_with_its_number_and_all_its_reasons() {
    let all = "id must be a 64-bit integer of 1 or greater; name must not be blank; \
               categoryId must be a 64-bit integer; status must be one of available, pending, sold; \
               createdAt must be a time in UTC such as 2026-11-22T17:00:00.123456Z";
    let ndjson = "{\"id\":1,\"name\":\"Rex\",\"categoryId\":1}\n\
                  {\"id\":0,\"name\":\" \",\"categoryId\":\"x\",\"status\":\"\",\"createdAt\":\"now\"}\n\
                  {\"id\":2,\"name\":\"Tom\",\"categoryId\":1}\n";
    let csv = "id,name,categoryId,status,createdAt\n1,Rex,1,,\n0, ,x,Sold,now\n2,Tom,1,,\n";
    for (format, file, number) in [(FileFormat::Ndjson, ndjson, 2), (FileFormat::Csv, csv, 3)] {
        let target = storage(&[]).await;
        let (imported, refused) = import(&target, file.as_bytes(), format, KEEP_IDS).await;
        assert_eq!(imported.unwrap(), ImportSummary { added: 2, refused: 1, ..ImportSummary::default() });
        assert_eq!(refused, [(number, all.to_owned())]);
        assert_eq!(pets(&target).await.iter().map(|stored| stored.pet.id().get()).collect::<Vec<_>>(), [1, 2]);
    }
}

#[test]
fn each_bad_row_of_a_csv_file_has_its_own_reason() {
    for (row, reason) in [
        ("Rex", "the line must have 3 columns, not 1"),
        ("Rex,1,,", "the line must have 3 columns, not 4"),
        (",1,", "name must not be blank"),
        ("Rex,,", "categoryId must be a 64-bit integer"),
        ("Rex,1.0,", "categoryId must be a 64-bit integer"),
        ("Rex, 1,", "categoryId must be a 64-bit integer"),
        ("Rex,9223372036854775808,", "categoryId must be a 64-bit integer"),
        ("\"Re\nx\",1,", "name must not contain control characters"),
        ("Rex,1,none", "status must be one of available, pending, sold"),
    ] {
        let lines = read(format!("name,categoryId,status\n{row}\n").as_bytes(), FileFormat::Csv, false).unwrap();
        assert_eq!(lines[0].pet, Err(reason.to_owned()), "{row}");
    }
    let lines = read(b"name,categoryId\nR\xffx,1\n", FileFormat::Csv, false).unwrap();
    assert_eq!(lines[0].pet, Err("the line must be UTF-8".to_owned()));
}
