import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;

/** Uses the API with the client of the JDK and its defaults, which offer HTTP/2 by an upgrade. */
public class UseJava {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static String token;

    public static void main(String[] arguments) throws Exception {
        String list = arguments[0] + "/pets";
        token = arguments[1];
        String pet = "{\"name\":\"Rex\",\"categoryId\":9223372036854775807}";
        for (int number = 0; number < 100; number++) {
            HttpResponse<String> created = send(list, BodyPublishers.ofString(pet));
            expect(201, created);
            String location = created.headers().firstValue("Location").orElseThrow();
            expect(200, send(created.uri().resolve(location).toString(), null));
        }
        HttpResponse<String> page = send(list + "?limit=1", null);
        String link = page.headers().firstValue("Link").orElseThrow();
        String next = link.substring(1, link.indexOf('>'));
        // `URI.resolve` drops the last segment of the path if a reference is only a query (RFC 2396).
        if (!page.uri().resolve(next).getPath().equals("/v1/")) {
            throw new IllegalStateException("URI.resolve follows RFC 3986");
        }
        expect(200, send(list + next, null));
    }

    private static HttpResponse<String> send(String url, HttpRequest.BodyPublisher body) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url));
        request.header("Authorization", "Bearer " + token);
        if (body != null) {
            request.header("Content-Type", "application/json").POST(body);
        }
        return CLIENT.send(request.build(), BodyHandlers.ofString());
    }

    private static void expect(int status, HttpResponse<String> response) {
        if (response.statusCode() != status) {
            throw new IllegalStateException(response + " " + response.body());
        }
    }
}
