package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// asked returns a request from lines: a path with its query, and headers after " | ".
func asked(t *testing.T, line string) *http.Request {
	t.Helper()
	parts := strings.Split(line, " | ")
	u, err := url.Parse("http://api.test" + parts[0])
	if err != nil {
		t.Fatal(err)
	}
	r := &http.Request{Method: http.MethodPost, URL: u, Header: http.Header{}}
	for _, h := range parts[1:] {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// TestCredentialOfEachForm reads the credential KEY from requests as clients of known APIs send them. A second request with another
// ID in its place must have another credential.
func TestCredentialOfEachForm(t *testing.T) {
	for _, line := range []string{
		"/data/2.5/weather?q=Berlin&appid=KEY", "/v1/query?input=x&AppId=KEY", "/latest.json?app_id=KEY", "/photos?client_id=KEY", "/wot/account?application_id=KEY", "/place?ak=KEY",
		"/x?api_key=KEY", "/x?apikey=KEY", "/x?apiKey=KEY", "/x?key=KEY", "/x?access_token=KEY", "/x?token=KEY", "/x?subscription-key=KEY", "/x?api-key=KEY", "/x?app_id=a&app_key=KEY",
		"/x?client_id=a&client_secret=KEY", "/x?session_id=KEY", "/x?hapikey=KEY", "/api/hook?code=xAzFuKEY",
		"/v1/spaces/A/messages?key=AIza&token=KEY", "/1/cards?key=app&token=KEY", "/x?q=1&wskey=KEY&pageToken=p",
		"/c/b?sv=2022-11-02&se=2026-12-01&sr=c&sp=r&sig=KEY", "/c/b?sv=2022-11-02&skoid=KEY&se=2026-12-01&sig=x%3D",
		"/c/b?X-Goog-Algorithm=x&X-Goog-Credential=KEY%2F20261130%2Fauto&X-Goog-Signature=x", "/c/b?GoogleAccessId=KEY&Expires=1&Signature=x", "/c?Expires=1&Signature=x&Key-Pair-Id=KEY",
		"/?q-sign-algorithm=sha1&q-ak=KEY&q-sign-time=1&q-signature=x", "/?AccessKeyId=KEY&SecurityToken=s&Signature=x&SignatureNonce=y",
		"/services/T00/B00/KEY", "/triggers/T00/1/KEY", "/workflows/T00/A00/1/KEY", "/api/webhooks/1/KEY", "/api/v10/webhooks/1/KEY/slack?wait=true", "/bot1:KEY/sendMessage", "/file/bot1:KEY/a",
		"/webhookb2/a@b/IncomingWebhook/KEY/c", "/webhook/a@b/IncomingWebhook/KEY/c", "/workflows/1/triggers/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers&sv=1.0&sig=KEY",
		"/hooks/a/KEY45678901234567890123", "/hooks/catch/1/KEY/", "/trigger/e/with/key/KEY", "/integration/KEY/enqueue", "/v3/KEY456789012345678901234567890",
		"/2010-04-01/Accounts/AC1/Messages.json | Authorization: Basic KEY",
		`/ | Signature-Input: sig1=("@method" "@path");created=1;keyid="KEY";alg="x" | Signature: sig1=:abc:`, `/ | Signature: keyId="KEY",algorithm="x",signature="y"`, `/ | Authorization: Signature keyId="https://a.test/KEY",signature="y"`,
		"/api/1/store/ | X-Sentry-Auth: Sentry sentry_version=7, sentry_timestamp=1, sentry_key=KEY, sentry_client=a", "/api/1/envelope/?sentry_key=KEY&sentry_version=7", "/ | Authorization: Sentry sentry_timestamp=1, sentry_key=KEY",
		"/ | X-Auth-Token: KEY", "/ | Private-Token: KEY", "/ | Job-Token: KEY", "/ | X-Shopify-Access-Token: KEY", "/ | Dd-Api-Key: KEY | Dd-Application-Key: x", "/ | X-Auth-Email: a@b | X-Auth-Key: KEY",
		"/ | X-Auth-Client: a | X-Auth-Token: KEY", "/ | Api-Key: KEY", "/ | X-Figma-Token: KEY", "/ | X-Rapidapi-Host: h | X-Rapidapi-Key: KEY", "/ | X-Functions-Key: KEY", "/ | Ocp-Apim-Subscription-Key: KEY",
		"/ | X-Mbx-Apikey: KEY", "/ | Ok-Access-Key: KEY | Ok-Access-Sign: x | Ok-Access-Timestamp: 1", "/ | X-Honeycomb-Team: KEY", "/ | Client-Id: KEY", "/ | X-Auth-Timestamp: 1 | X-Auth-Key: KEY",
		"/ | X-Forwarded-Client-Cert: Hash=KEY", "/ | Client-Cert: :KEY:",
		"/ | Authorization: SharedAccessSignature sr=x&sig=y&se=1&skn=KEY", "/ | Authorization: SharedAccessSignature sr=KEY&sig=y&se=1", "/ | Authorization: EG1-HMAC-SHA256 client_token=KEY;access_token=b;timestamp=1;nonce=2;signature=x",
		"/ | Authorization: SDK-HMAC-SHA256 Access=KEY, SignedHeaders=a, Signature=b", "/ | Authorization: bce-auth-v1/KEY/2026-01-01T00:00:00Z/1800/host/sig", "/ | Authorization: q-sign-algorithm=sha1&q-ak=KEY&q-signature=x",
		`/ | Authorization: WSSE profile="UsernameToken" | X-Wsse: UsernameToken Username="KEY", PasswordDigest="x", Nonce="n"`,
	} {
		var own [2]string
		for i, id := range [...]string{"alice", "bob12"} {
			r := asked(t, strings.ReplaceAll(line, "KEY", id))
			own[i] = credentialOf(r, guest{}, r.URL.EscapedPath())
			if !strings.Contains(own[i], id) {
				t.Errorf("%s: got %q, want %s", line, own[i], id)
			}
		}
		changed := strings.NewReplacer("KEY", "alice", "Signature=x", "Signature=z", "sig=y&", "sig=z&", "sentry_timestamp=1", "sentry_timestamp=2", "created=1", "created=2", "timestamp=1", "timestamp=2", "Timestamp: 1", "Timestamp: 2",
			"signature=x", "signature=z", "signature=\"y\"", "signature=\"z\"", "Nonce=\"n\"", "Nonce=\"m\"", "pageToken=p", "pageToken=q", "q-sign-time=1", "q-sign-time=2", "T00:00:00Z", "T01:00:00Z", "q=Berlin", "q=Bonn").Replace(line)
		if r := asked(t, changed); credentialOf(r, guest{}, r.URL.EscapedPath()) != own[0] {
			t.Errorf("%s: another call has another credential", changed)
		}
	}
}

// TestValuesOfOneCallAreNoCredential reads values that differ between the calls of a caller.
func TestValuesOfOneCallAreNoCredential(t *testing.T) {
	for _, line := range []string{
		"/x?page_token=a", "/x?pageToken=a", "/x?NextToken=a", "/x?continuation-token=a", "/x?$skiptoken=a", "/x?syncToken=a", "/x?key-marker=a", "/x?startkey=a", "/x?objectKey=a", "/x?nonce=a",
		"/x?sig=a", "/x?signature=a", "/x?code=a&state=b", "/x?app_id=730", "/x?client_id=12", "/x?client_id=0b8a4f2e-6c1d-4b47-9d3e-1f2a3b4c5d6e", "/x?author=a", "/x?sort_key=a", "/x?cursor=a",
		"/ | X-Csrf-Token: a", "/ | X-Recaptcha-Token: a", "/ | X-Amz-Security-Token: a", "/ | X-Request-Id: a", "/ | X-Auth-Timestamp: 1", "/ | X-Signature: a", "/ | Signature: t=1, v1=a:b", "/ | Idempotency-Key: a",
		"/services/1", "/services/a/b/c", "/hooks/1/deliveries", "/v3/users", "/webhooks/1", "/api/webhooks/1", "/bots/1", "/api/webhooks/x/y",
	} {
		if r := asked(t, line); credentialOf(r, guest{}, r.URL.EscapedPath()) != "" {
			t.Errorf("%s: got %q", line, credentialOf(r, guest{}, r.URL.EscapedPath()))
		}
	}
	r := asked(t, "/api/v10/webhooks/1/aW50ZXJhY3Rpb246MTIz")
	if own := credentialOf(r, guest{}, r.URL.EscapedPath()); own != "1/" {
		t.Errorf("a token of one interaction: got %q, want that of its application", own)
	}
}
