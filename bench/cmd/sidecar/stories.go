package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/bench/wire"
)

// question returns a chat request of 4 KiB.
func question(path string, streamed bool) []byte {
	head, tail := `{"model":"gpt-4o",`, `"}]}`
	if streamed {
		head += `"stream":true,`
	}
	head += `"temperature":0,"max_tokens":300,"messages":[{"role":"system","content":"You answer briefly."},{"role":"user","content":"`
	text := strings.Repeat("Some of the words, that people say to models, are repeated often. ", 70)
	return wire.Request("POST", path, "application/json", "Authorization: Bearer sk-bench\r\n", []byte(head+text[:4096-len(head)-len(tail)]+tail))
}

// chat requests an answer without a stream.
func chat(path string) story {
	request := question(path, false)
	return func(c *client) error { return c.Ask(request, "200") }
}

// put stores an object of 1 KiB, as signed by an SDK.
func put(path string) story {
	body := bytes.Repeat([]byte("x"), 1<<10)
	request := wire.Request("PUT", path, "application/octet-stream", fmt.Sprintf("X-Amz-Content-Sha256: %x\r\nX-Amz-Date: 20260101T000000Z\r\n"+
		"Authorization: AWS4-HMAC-SHA256 Credential=AK/20260101/eu-west-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=0\r\n", sha256.Sum256(body)), body)
	return func(c *client) error { return c.Ask(request, "200") }
}

// first measures the time to the first word of a stream.
func first(path string) story {
	request := question(path, true)
	return func(c *client) error {
		begun := time.Now()
		err := c.listen(request, func(n int, at, _ time.Time) {
			if n == 0 {
				c.took = at.Sub(begun)
			}
		})
		return err
	}
}

// passing measures the average time of a word from the model's write to the caller's read, without the first word.
func passing(path string) story {
	request := question(path, true)
	return func(c *client) error {
		var sum time.Duration
		err := c.listen(request, func(n int, at, written time.Time) {
			if n > 0 {
				sum += at.Sub(written)
			}
		})
		c.took = sum / (words - 1)
		return err
	}
}

// listen requests a stream and reads it to its end. For each word it calls heard with the times of the read and the write.
func (c *client) listen(request []byte, heard func(n int, at, written time.Time)) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	for n, ended := 0, false; ; {
		line, err := c.In.ReadSlice('\n')
		switch {
		case err != nil:
			return err
		case bytes.HasPrefix(line, []byte("data: [DONE]")):
			ended = true
		case ended && string(line) == "0\r\n":
			_, err = c.In.ReadSlice('\n')
			if err == nil && n != words {
				err = fmt.Errorf("%d words, want %d", n, words)
			}
			return err
		}
		_, rest, found := bytes.Cut(line, []byte(`"delta":{"content":"`))
		if !found {
			continue
		}
		digits, _, _ := bytes.Cut(rest, []byte(" "))
		nanos, err := strconv.ParseInt(string(digits), 10, 64)
		if err != nil {
			return err
		}
		heard(n, time.Now(), time.Unix(0, nanos))
		n++
	}
}
