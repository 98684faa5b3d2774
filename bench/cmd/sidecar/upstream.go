package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// kilobyte is a response of 1 KiB, completion a response of a language model, and events the head of a stream.
var (
	kilobyte   = whole(bytes.Repeat([]byte("0123456789abcdef"), 64))
	completion = whole([]byte(completionHead + strings.Repeat("word ", 300)[:1024-len(completionHead)-len(completionTail)] + completionTail))
	events     = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
)

const (
	completionHead = `{"id":"chatcmpl-1","object":"chat.completion","created":1767225600,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"`
	completionTail = `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":890,"completion_tokens":120,"total_tokens":1010}}`

	word = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":"gpt-4o","choices":[{"index":0,"delta":{"content":"%d "},"finish_reason":null}]}` + "\n\n"
	done = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":"gpt-4o","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":890,"completion_tokens":8,"total_tokens":898}}` + "\n\ndata: [DONE]\n\n"

	words   = 8                    // per stream
	between = 2 * time.Millisecond // interval between words
)

func whole(body []byte) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// upstream responds to every request at minimal cost. A chat gets a model's response, or a stream whose words are the times of
// their writes. Other requests get 1 KiB.
func upstream(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			in := bufio.NewReaderSize(c, 16<<10)
			for {
				answer, err := heard(in)
				if err == nil && answer == nil {
					err = stream(c)
				} else if err == nil {
					_, err = c.Write(answer)
				}
				if err != nil {
					return
				}
			}
		}()
	}
}

// heard reads a request and returns its response, or nil for a stream.
func heard(in *bufio.Reader) (answer []byte, err error) {
	answer = kilobyte
	length := 0
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if first && bytes.Contains(line, []byte("/chat/completions ")) {
			answer = completion
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return nil, err
			}
		}
	}
	body, err := in.Peek(length)
	if bytes.Contains(body[:min(len(body), 128)], []byte(`"stream":true`)) {
		answer = nil
	}
	_, _ = in.Discard(len(body))
	return answer, err
}

func stream(c net.Conn) error {
	if _, err := c.Write(chunk(append([]byte(nil), events...), fmt.Sprintf(word, time.Now().UnixNano()))); err != nil {
		return err
	}
	for range words - 1 {
		time.Sleep(between)
		if _, err := c.Write(chunk(nil, fmt.Sprintf(word, time.Now().UnixNano()))); err != nil {
			return err
		}
	}
	_, err := c.Write(append(chunk(nil, done), "0\r\n\r\n"...))
	return err
}

func chunk(to []byte, text string) []byte { return fmt.Appendf(to, "%x\r\n%s\r\n", len(text), text) }
