//! What most tests use.

pub(crate) use animal_store_test_servers::{
    HttpClient, RawConnection, Request, Response, sample, wait_until,
};
pub(crate) use serde_json::{Value, json};

pub(crate) use crate::{
    metrics::Samples,
    raw_requests::{
        assert_ends, assert_goes_on, assert_no_pet, assert_refused, begin_create, fields, get,
        names, pet, post, post_chunked, post_head, response_to, smuggled, statuses, with_lines,
    },
    test_app::{OTHER_TOKEN, PET, TOKEN, TestApp},
};
