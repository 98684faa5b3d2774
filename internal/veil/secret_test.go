package veil

import "testing"

func TestCredentialsAreKnownByTheirNames(t *testing.T) {
	for _, name := range []string{
		"Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "Api-Key", "apikey", "apiKey", "APIKey", "X-Apikey", "key", "KEY", "X-Goog-Api-Key", "X_API_KEY",
		"X-Auth", "X-Auth-User", "Xauth", "authkey", "authToken", "X-Auth-Token", "X-Access-Token", "access_token", "accessToken", "token2", "X-Vault-Token", "Ocp-Apim-Subscription-Key", "X-Amz-Security-Token",
		"X-Amz-Server-Side-Encryption-Customer-Key", "X-Amz-Credential", "X-Amz-Signature", "sig", "AWSAccessKeyId", "Awsaccesskeyid", "client_secret", "clientSecret", "password", "passwd", "pass", "userPassword",
		"PHPSESSION", "session_id", "connect.sid", "X-Otp", "X-Jwt-Assertion", "X-CSRF-Token", "authenticate", "OAuth2", "oauth_nonce", "key1", "privatekey", "X-Functions-Key", "code.key",
	} {
		if !Secret(name) {
			t.Errorf("%s is shown", name)
		}
	}
	for _, name := range []string{
		"X-Tenant", "tenant", "X-Account-Id", "User-Agent", "X-User", "u", "id", "Host", "region", "X-Forwarded-For", "design", "passenger", "passive", "side", "",
		"author", "authors", "authority", "X-Author", "coAuthor", "keyword", "keywords", "keyboard", "keyframe", "monkey", "turkey", "max_tokens", "Idempotency-Key", "X-Idempotency-Key",
		"idempotencyKey", "Weir-Order-Key", "partition_key", "Sec-Websocket-Key", "signal", "sigma", "Content-Type", "Title",
	} {
		if Secret(name) {
			t.Errorf("%s is hidden", name)
		}
	}
}

func TestTextsThatRevealCredentials(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.org/?token=abc":                                              "token",
		"https://example.org/a?x=1&api_key=abc":                                       "api_key",
		"https://example.org/#access_token=abc":                                       "access_token",
		"https://ann:secret@example.org/":                                             "user",
		"https://ann@example.org/":                                                    "user",
		"http, Open, https://example.org/door, headers.Authorization=Bearer abc":      "headers.Authorization",
		"http, Open, https://example.org/door, headers.authorization = \"Basic x\"":   "headers.authorization",
		`[{"action":"http","url":"https://a.example","headers":{"X-Api-Key":"abc"}}]`: "X-Api-Key",
		`[{"action":"http","body":"{\"password\": \"abc\"}"}]`:                        "password",
		"https://example.org/?author=ann&keyword=dam&max_tokens=5":                    "",
		"view, Open portal, https://example.org/keys/1, clear=true":                   "",
		"https://example.org/?token=":                                                 "",
		"mailto:ann@example.org":                                                      "",
	} {
		if got := Reveals(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
