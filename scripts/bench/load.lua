-- The requests of a workload, for wrk. Its arguments: WORKLOAD TOKEN PETS RUN [STATUS]
-- RUN makes names and keys unique. wrk itself counts responses with a status of 400 or above. Only with STATUS, the
-- status of every response is compared: it costs CPU.

local threads, sent = {}, 0
local BODY = '{"name":"%s-%d-%09d","categoryId":%d,"status":"available"}'
unexpected = 0

function setup(thread)
    table.insert(threads, thread)
    thread:set("number", #threads)
end

function init(arguments)
    local workload, token, pets, run, status = unpack(arguments)
    local headers = {Authorization = "Bearer " .. (workload == "401" and "unknown-token" or token)}
    math.randomseed(os.time() * 100 + number)
    if workload == "get" then
        local before, after = wrk.format("GET", "/v1/pets/ID", headers):match("^(.*)ID(.*)$")
        next_request = function() return before .. math.random(pets) .. after end
    elseif workload:match("^create") then
        headers["Content-Type"] = "application/json"
        next_request = function()
            sent = sent + 1
            if workload == "create with a key" then
                headers["Idempotency-Key"] = string.format("%s-%d-%09d", run, number, sent)
            end
            local body = string.format(BODY, run, number, sent, math.random(10, 99))
            return wrk.format("POST", "/v1/pets", headers, body)
        end
    else
        local page = wrk.format("GET", "/v1/pets?limit=20&status=available", headers)
        next_request = function() return page end
    end
    if status then
        function response(found)
            if found ~= tonumber(status) then unexpected = unexpected + 1 end
        end
    end
end

function request()
    return next_request()
end

function done(summary, latency)
    local errors, wrong = summary.errors, 0
    for _, thread in ipairs(threads) do
        wrong = wrong + thread:get("unexpected")
    end
    print(string.format(
        '{"requests":%d,"seconds":%f,"refused":%d,"unexpected":%d,"failed":%d,"p50":%f,"p99":%f}',
        summary.requests, summary.duration / 1e6, errors.status, wrong,
        errors.connect + errors.read + errors.write + errors.timeout,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
