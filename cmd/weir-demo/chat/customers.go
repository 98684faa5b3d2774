package chat

import (
	"encoding/json"
	"fmt"
)

// A customer asks in one language, through one shop.
type customer struct {
	name, shop, language, plan string
}

var customers = []customer{
	{"ann", "london", "en", "premium"}, {"haru", "tokyo", "ja", "premium"},
	{"ben", "london", "en", "basic"}, {"yui", "tokyo", "ja", "basic"},
	{"cleo", "london", "en", "basic"}, {"ken", "tokyo", "ja", "basic"},
	{"dan", "london", "en", "basic"}, {"mio", "tokyo", "ja", "basic"},
}

// A sort is a kind of question.
type sort int

const (
	common  sort = iota // the same words for all customers
	own                 // about the customer's order
	strange             // unforeseen
)

// order is the sequence of the kinds.
var order = []sort{own, common, own, strange, own, common, own, own, strange, common}

var questions = map[string]map[sort][]string{
	"en": {
		common:  {"What are your opening hours?", "Do you ship to Germany?"},
		own:     {"Where is my order?", "How do I return these shoes?", "Can I still cancel my order?", "When do I get my refund?", "I got the wrong item.", "Please change my delivery address."},
		strange: {"Which boots go with a green coat?", "What would my grandmother like for her birthday?", "Can you write me a haiku about rain boots?"},
	},
	"ja": {
		common:  {"営業時間を教えてください", "どんな支払い方法がありますか"},
		own:     {"注文した商品は今どこにありますか", "商品を返品したいのですが", "注文をキャンセルしたい", "返金はいつされますか", "届いた商品が壊れていました", "配送先の住所を変更したい"},
		strange: {"緑のコートに合うブーツはどれですか", "祖母の誕生日に何を贈ればいいですか", "雨の日についての俳句を書いて"},
	},
}

// A question is one call.
type question struct {
	customer
	text   string
	stream bool
	body   []byte
}

// ask returns the nth question.
func ask(n int) question {
	c := customers[n%len(customers)]
	what := order[n%len(order)]
	texts := questions[c.language][what]
	q := question{customer: c, text: texts[n/len(customers)%len(texts)], stream: n%5 != 4}
	q.body = body(q, what, n)
	return q
}

// body returns the request as OpenAI's SDK writes it. A question about an order contains the order's number, so that no earlier
// answer matches.
func body(q question, what sort, n int) []byte {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	system := "You are the assistant of a shoe shop. Answer in at most three sentences, in the customer's language."
	if what != common {
		system += fmt.Sprintf(" The customer is %s, whose last order is number %d.", q.name, 48_000+n)
	}
	b, err := json.Marshal(struct {
		Model    string    `json:"model"`
		Stream   bool      `json:"stream,omitempty"`
		Most     int       `json:"max_completion_tokens"`
		Messages []message `json:"messages"`
	}{primaryModel, q.stream, 300, []message{{"system", system}, {"user", q.text}}})
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return b
}

// answer returns the text of the simulated models.
func answer(language string) string {
	if language == "ja" {
		return "ご質問ありがとうございます。ただいま確認いたしました。詳しくは「注文履歴」をご覧ください。"
	}
	return "Thank you for asking! I have just looked it up for you. You find all the details under \"My orders\"."
}
