-- The requests of a workload, for wrk. Its arguments: WORKLOAD TOKEN PETS RUN, which makes names and keys unique.

local threads, sent = 0, 0
local BODY = '{"name":"%s-%d-%09d","categoryId":%d,"status":"available"}'

function setup(thread)
    threads = threads + 1
    thread:set("number", threads)
end

function init(arguments)
    local workload, token, pets, run = unpack(arguments)
    local headers = {Authorization = "Bearer " .. (workload == "401" and "unknown-token" or token)}
    math.randomseed(os.time() * 100 + number)
    if workload == "get" then
        local before, after = wrk.format("GET", "/v1/pets/ID", headers):match("^(.*)ID(.*)$")
        request = function() return before .. math.random(pets) .. after end
    elseif workload:match("^create") then
        headers["Content-Type"] = "application/json"
        request = function()
            sent = sent + 1
            if workload == "create with a key" then
                headers["Idempotency-Key"] = string.format("%s-%d-%09d", run, number, sent)
            end
            local body = string.format(BODY, run, number, sent, math.random(10, 99))
            return wrk.format("POST", "/v1/pets", headers, body)
        end
    else
        local page = wrk.format("GET", "/v1/pets?limit=20&status=available", headers)
        request = function() return page end
    end
end

function done(summary, latency)
    local errors = summary.errors
    print(string.format(
        '{"requests":%d,"seconds":%f,"refused":%d,"failed":%d,"p50":%f,"p99":%f}',
        summary.requests, summary.duration / 1e6, errors.status,
        errors.connect + errors.read + errors.write + errors.timeout,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
