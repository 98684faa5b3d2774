package drstest

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
)

// shape matches a signature for DRS. Only its key and region are used.
var shape = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/, ]+)/[0-9]{8}/([a-z0-9-]+)/drs/aws4_request, ?SignedHeaders=[a-z0-9;-]*\bhost\b[a-z0-9;-]*, ?Signature=[0-9a-f]{64}$`)

// read identifies the caller and parses the request, or refuses it.
func (s *Server) read(r *http.Request) (at place, in object, refused *reply) {
	no := func(status int, code, message string) (place, object, *reply) {
		a := failure(status, code, message)
		return at, nil, &a
	}
	auth := r.Header.Get("Authorization")
	if auth == "" {
		return no(http.StatusForbidden, "MissingAuthenticationTokenException", "Missing Authentication Token")
	}
	part := shape.FindStringSubmatch(auth)
	if part == nil || r.Header.Get("X-Amz-Date") == "" {
		return no(http.StatusForbidden, "IncompleteSignatureException", "the signature has not the shape of one for drs")
	}
	key := part[1]
	at = place{key, part[2]}
	if account, ok := s.Accounts[key]; ok {
		at.account = account
	}
	if s.Expired != nil && s.Expired(key) {
		return no(http.StatusForbidden, "ExpiredTokenException", "The security token included in the request is expired")
	}
	body, code, err := s.body(r, key)
	if err != nil {
		return no(http.StatusForbidden, code, err.Error())
	}
	if r.Method != http.MethodPost || len(body) > 0 && json.Unmarshal(body, &in) != nil {
		return no(http.StatusBadRequest, "SerializationException", "want POST and a JSON object")
	}
	return at, in, nil
}

func (s *Server) body(r *http.Request, key string) (body []byte, code string, err error) {
	if s.Verify == nil {
		body, err = io.ReadAll(r.Body)
		return body, "SerializationException", err
	}
	if _, ok := s.Verify.Secrets[key]; !ok {
		code = "UnrecognizedClientException"
	}
	signed, err := s.Verify.Verify(r)
	if code == "" {
		code = "InvalidSignatureException"
	}
	return signed.Body, code, err
}
