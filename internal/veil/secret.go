package veil

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// secretWords indicate a credential if they are complete words of its name. As parts they are too common.
var secretWords = []string{"auth", "key", "otp", "pass", "pwd", "sid", "sig"}

// secretParts indicate a credential also as parts of words. This rule matches too much, but a list would miss unknown names,
// and a hidden value still distinguishes callers.
var secretParts = []string{
	"accesskey", "apikey", "assertion", "authent", "authoris", "authoriz", "cookie", "credential", "jwt", "oauth", "passphrase", "passw", "secret", "session", "signature", "token",
}

// harmlessWords contain one of these parts, or end like a credential's name.
var harmlessWords = []string{"donkey", "hockey", "jockey", "monkey", "tokenize", "tokenizer", "tokens", "turkey", "whiskey"}

// keysOfThings precede "key" in names that are not credentials, such as Idempotency-Key.
var keysOfThings = []string{"cache", "collapse", "deduplication", "foreign", "group", "idempotency", "idempotent", "message", "order", "ordering", "partition", "primary", "public", "routing", "row", "shard", "sort", "surrogate", "websocket"}

// Secret reports whether a header, parameter or scope with the name contains a credential. weir uses only this list: for hiding
// values in logs, for headers that it does not forward, and for values that it does not store.
func Secret(name string) bool {
	if is, ok := known[name]; ok {
		return is
	}
	return secret(name)
}

// known has the results of Secret for names in almost every request.
var known = func() map[string]bool {
	all := make(map[string]bool)
	for _, name := range []string{
		"Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Cache-Control", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Cookie", "Date", "Host",
		"Idempotency-Key", "Origin", "Prefer", "Referer", "Traceparent", "Tracestate", "User-Agent", "Weir-Deliver-Before", "Weir-Not-Before", "Weir-Order-Key", "X-Api-Key",
		"X-Correlation-Id", "X-Forwarded-For", "X-Request-Id",
	} {
		all[name] = secret(name)
	}
	return all
}()

func secret(name string) bool {
	all := words(name)
	for i, word := range all {
		thing := i > 0 && slices.Contains(keysOfThings, all[i-1])
		if secretWord(word) && !(word == "key" && thing) {
			return true
		}
	}
	return false
}

func secretWord(word string) bool {
	word = strings.TrimRight(word, "0123456789")
	switch {
	case slices.Contains(harmlessWords, word):
		return false
	case slices.Contains(secretWords, word), strings.HasSuffix(word, "key"), strings.HasSuffix(word, "auth"),
		strings.HasPrefix(word, "auth") && !strings.HasPrefix(word, "author"):
		return true
	}
	return slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(word, part) })
}

// words returns the words of a name in lower case. Words end at characters other than letters and digits, and where capitals
// begin a word.
func words(name string) (all []string) {
	runes := []rune(name)
	begin := 0
	cut := func(end int) {
		if end > begin {
			all = append(all, strings.ToLower(string(runes[begin:end])))
		}
	}
	for i, c := range runes {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			cut(i)
			begin = i + 1
		case i > begin && unicode.IsUpper(c) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			cut(i)
			begin = i
		}
	}
	cut(len(runes))
	return all
}

// named finds names with values in texts: in queries, JSON, and lists of headers. user finds users in URLs.
var (
	named = regexp.MustCompile(`([\pL\pN_.-]+)[\\"']*\s*[:=]\s*[\\"']*[^\s\\"'\[\]{},;&]`)
	user  = regexp.MustCompile(`://[^\s/?#"'<>@]+@`)
)

// Reveals returns the name of a credential with a value in a text, such as a parameter of a URL or a header, or "".
func Reveals(text string) string {
	if user.MatchString(text) {
		return "user"
	}
	for _, found := range named.FindAllStringSubmatch(text, -1) {
		if Secret(found[1]) {
			return found[1]
		}
	}
	return ""
}
