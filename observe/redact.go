package observe

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Mask replaces a secret.
const Mask = "***"

// A secret describes one way in which errors of HTTP clients and SDKs reveal secrets. The first group of the pattern is kept, the
// rest is masked. A text can only match if it contains one of the words, in any case. Searching for the words first is cheap.
type secret struct {
	words   []string
	pattern *regexp.Regexp
}

var secrets = [...]secret{
	// The user of a URL as net/http shows it: unescaped, with *** for the password.
	{[]string{":***@"}, regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)\S*:\*\*\*@`)},
	// User and password of a URL, up to the last @ of its authority.
	{[]string{"@"}, regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#"'<>]*@`)},
	// The query of a URL: the values of named parameters, or the entire query if it has no names.
	{[]string{"?", "&", ";"}, regexp.MustCompile(`([?&;][^\s=&;"'<>#]*=)[^\s&;"'<>#]+`)},
	{[]string{"?"}, regexp.MustCompile(`(://[^\s?#"'<>]*\?)[^\s=&;"'<>#]+(?:[\s"'<>#]|$)`)},
	// The fragment of a URL, where OAuth puts tokens.
	{[]string{"#"}, regexp.MustCompile(`(://[^\s#"'<>]*#)[^\s"'<>]+`)},
	// Paths that contain a credential: webhooks of Slack, Discord and Teams, and bots of Telegram.
	{[]string{"/services/", "/bot", "webhook"}, regexp.MustCompile(
		`(/services/[TE][^/\s]*/B[^/\s]*/|/bot\d+(?::|%3A)|/webhooks/\d+/|/IncomingWebhook/)[^\s?"'<>]+`)},
	// Header fields in the dump of a request, with or without quotes.
	{[]string{"authorization", "cookie", "api-key", "x-am", "x-auth"}, regexp.MustCompile(
		`(?i)((?:authorization|(?:set-)?cookie|(?:x-)?(?:goog-)?api-key|x-amz-security-token|x-auth-token)["']?\s*[:=]\s*\[?["']?)[^\r\n"'\]]+`)},
	// Credentials that name their scheme, anywhere in the text.
	{[]string{"bearer"}, regexp.MustCompile(`(?i)(\bbearer\s+)[^\s"',]{8,}`)},
	{[]string{"basic"}, regexp.MustCompile(`(?i)(\bbasic\s+)[A-Za-z0-9+/=_-]{16,}`)},
	// Values in JSON and in key=value pairs.
	{[]string{"key", "token", "secret", "password", "signature"}, regexp.MustCompile(
		`(?i)(\b(?:api_?key|access_?token|refresh_?token|id_?token|session_?token|client_?secret|secret_?access_?key|password|signature)["']?\s*[:=]\s*["']?)[^\s"',&}]+`)},
	// Keys with a known prefix: OpenAI and Anthropic, Google, AWS, GitHub, Slack.
	{[]string{"sk-", "aiza", "akia", "asia", "gh", "xox"}, regexp.MustCompile(
		`\b(sk-|AIza|AKIA|ASIA|gh[opsu]_|github_pat_|xox[abprs]-)[A-Za-z0-9_*-]{8,}`)},
}

func (s secret) mask(text, lower string) string {
	for _, w := range s.words {
		if strings.Contains(lower, w) {
			return s.pattern.ReplaceAllString(text, "${1}"+Mask)
		}
	}
	return text
}

// longest is the number of bytes that Redact examines. An error can contain a whole document.
const longest = 4096

// Redact returns s, shortened to n bytes, without the secrets that errors are known to contain: passwords and query values of
// URLs, credentials in header fields, and keys with well-known prefixes. It is a second line of defense: it cannot mask a secret
// of an unknown form.
func Redact(s string, n int) string {
	s = head(s)
	lower := strings.ToLower(s)
	for _, secret := range secrets {
		s = secret.mask(s, lower)
	}
	return Cut(s, n)
}

// head returns the beginning of s. It cuts at a space, because a truncated URL would no longer match the patterns.
func head(s string) string {
	if len(s) <= longest {
		return s
	}
	return s[:max(0, strings.LastIndexAny(s[:longest], " \t\r\n"))] + " ..."
}

// Cut returns s, or its beginning followed by dots if s is longer than n bytes.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(0, n-len("..."))
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// mostError is the maximum length of an error text, in bytes.
const mostError = 1024

// Error returns the redacted text of err, or "" if err is nil. It recovers from errors whose Error method panics.
func Error(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T (its Error method panicked)", err)
		}
	}()
	if err == nil {
		return ""
	}
	return Redact(err.Error(), mostError)
}
