package chat

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// patience is the timeout of a customer.
const patience = 30 * time.Second

// A reply is the result of a question.
type reply struct {
	question
	Status   int
	Tier     string
	Degraded bool
	Header   http.Header
	Text     string
	First    time.Duration // time to the first words
	Cost     float64
	Err      error // there was no answer, or not in the SDK's format
}

// costHeader is in the header of a response, or in the trailer of a stream.
const costHeader = "X-Weir-Cost"

// call sends a question as OpenAI's SDK does without retries, and parses the answer as strictly.
func (s *stage) call(ctx context.Context, q question) reply {
	r := reply{question: q}
	begun := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.sidecar.URL+"/chat/v1/chat/completions", bytes.NewReader(q.body))
	if err != nil {
		r.Err = err
		return r
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer none", "Accept-Language": q.language,
		"X-Tenant": q.shop, "X-User": q.name, "X-Plan": q.plan,
	} {
		req.Header.Set(name, value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		r.Err = err
		return r
	}
	defer resp.Body.Close()
	r.Status, r.Header = resp.StatusCode, resp.Header
	r.Tier, r.Degraded = resp.Header.Get("X-Weir-Tier"), resp.Header.Get("X-Weir-Degraded") == "true"
	if r.Status != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		r.Err = fmt.Errorf("%s: %s", resp.Status, text)
		return r
	}
	first := func() {
		if r.First == 0 {
			r.First = max(time.Since(begun), 1)
		}
	}
	if q.stream {
		r.Text, r.Err = readStream(resp, first)
	} else {
		r.Text, r.Err = readWhole(resp, first)
	}
	if cost := resp.Trailer.Get(costHeader); cost != "" {
		r.Header.Set(costHeader, cost)
	}
	cost, _, _ := strings.Cut(r.Header.Get(costHeader), " ")
	r.Cost, _ = strconv.ParseFloat(cost, 64) // 0 if no model was paid
	return r
}

// A choice is the part of an answer that contains its text.
type choice struct {
	Message, Delta struct{ Content string }
	FinishReason   string `json:"finish_reason"`
}

type completion struct {
	Object  string
	Choices []choice
	Error   json.RawMessage
}

var errFormat = errors.New("not what the SDK understands")

func readWhole(resp *http.Response, first func()) (string, error) {
	var c completion
	if err := json.NewDecoder(resp.Body).Decode(&c); err != nil {
		return "", fmt.Errorf("%w: %w", errFormat, err)
	}
	first()
	if c.Object != "chat.completion" || len(c.Choices) == 0 || c.Choices[0].Message.Content == "" || c.Choices[0].FinishReason == "" {
		return "", fmt.Errorf("%w: no message in it", errFormat)
	}
	_, err := io.Copy(io.Discard, resp.Body) // read up to the trailer
	return c.Choices[0].Message.Content, err
}

func readStream(resp *http.Response, first func()) (string, error) {
	var text strings.Builder
	ended, finished := false, false
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
			continue
		case data == "[DONE]":
			ended = true
			continue
		}
		var c completion
		if err := json.Unmarshal([]byte(data), &c); err != nil || c.Error != nil || c.Object != "chat.completion.chunk" {
			return text.String(), fmt.Errorf("%w: an event is %.200s", errFormat, data)
		}
		for _, part := range c.Choices {
			if part.Delta.Content != "" {
				first()
			}
			text.WriteString(part.Delta.Content)
			finished = finished || part.FinishReason != ""
		}
	}
	switch {
	case lines.Err() != nil:
		return text.String(), lines.Err()
	case !ended || !finished || text.Len() == 0:
		return text.String(), fmt.Errorf("%w: the stream has no end", errFormat)
	}
	return text.String(), nil
}
