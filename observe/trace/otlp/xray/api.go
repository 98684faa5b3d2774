package xray

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// An API is a client for X-Ray's API: signed POST requests with JSON. It is safe for concurrent use, but its fields must not
// change after first use.
type API struct {
	AWS    aws.Config   // its Region and Credentials
	URL    string       // "" means the regional endpoint
	Client *http.Client // nil means a client that follows no redirects
}

// An APIError is an error response of X-Ray.
type APIError struct {
	Status  int
	Code    string // "AccessDeniedException"; "" if unspecified
	Message string
}

func (e *APIError) Error() string {
	switch {
	case e.Code == "":
		return fmt.Sprintf("X-Ray answers with status %d", e.Status)
	case e.Message == "":
		return "X-Ray answers with " + e.Code
	}
	return "X-Ray answers with " + e.Code + ": " + e.Message
}

// mostAnswer is the maximum number of bytes read from a response. X-Ray's limit for a trace is 500 KB.
const mostAnswer = 64 << 20

// Call makes one request with in as JSON, and decodes the response into out.
func (a *API) Call(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, cmp.Or(a.URL, "https://xray."+a.AWS.Region+".amazonaws.com")+path, bytes.NewReader(body))
	if err != nil {
		return errors.New("the request to X-Ray cannot be made")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "weir")
	s := signer{config: a.AWS, v4: v4.NewSigner()}
	if err := s.sign(r, body); err != nil {
		return err
	}
	resp, err := cmp.Or(a.Client, steady).Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return fmt.Errorf("X-Ray of %s cannot be reached: %w", a.AWS.Region, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("X-Ray's response is incomplete: %w", err)
	case resp.StatusCode != http.StatusOK:
		return refusal(resp, answer)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("X-Ray's answer cannot be read: %w", err)
	}
	return nil
}

// steady follows no redirects, because a signature is for one host.
var steady = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func refusal(resp *http.Response, answer []byte) error {
	e := &APIError{Status: resp.StatusCode, Code: resp.Header.Get("X-Amzn-Errortype")}
	var said struct {
		Type    string `json:"__type"`
		Code    string `json:"code"`
		Message string `json:"message"` // case-insensitive
	}
	_ = json.Unmarshal(answer, &said) // a body that is not JSON is ignored
	e.Code = cmp.Or(e.Code, said.Code, said.Type)
	e.Code, _, _ = strings.Cut(e.Code[strings.LastIndexByte(e.Code, '#')+1:], ":")
	e.Message = clip(said.Message, mostMessage)
	return e
}
