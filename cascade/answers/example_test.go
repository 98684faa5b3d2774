package answers_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/seed1158cd35/weir/cascade/answers"
)

const shop = `
answers:
  - id: returns
    questions: ["How do I return an item?", 商品を返品するにはどうすればいいですか]
    keywords: [send back, 返品]
    answer:
      en: Within 30 days, with the label from "My orders".
      ja: 30日以内に、「注文履歴」の返送ラベルをお使いください。
`

func ExampleBook_Parse() {
	var book answers.Book
	err := book.Parse("answers.yaml", []byte("answers:\n  - id: returns\n    question: [\"How do I return an item?\"]\n"))
	mistakes, _ := errors.AsType[answers.Errors](err)
	for _, m := range mistakes {
		fmt.Println(m.Line, m)
	}
	// Output:
	// 2 answers.yaml:2:5: answers[0].answer: is missing
	// 2 answers.yaml:2:5: answers[0]: has neither questions nor keywords, so it can never match
	// 3 answers.yaml:3:5: answers[0].question: unknown field "question"; did you mean questions?
}

func ExampleBook_Find() {
	var book answers.Book
	if err := book.Parse("answers.yaml", []byte(shop)); err != nil {
		fmt.Println(err)
	}
	for _, question := range []string{"can I retrun items?", "返品したいです", "what is the capital of France"} {
		m, ok := book.Find(question)
		fmt.Println(ok, m.ID, m.Answer)
	}
	// Output:
	// true returns Within 30 days, with the label from "My orders".
	// true returns 30日以内に、「注文履歴」の返送ラベルをお使いください。
	// false
}

func ExampleExplanation_Print() {
	var book answers.Book
	if err := book.Parse("answers.yaml", []byte(shop)); err != nil {
		fmt.Println(err)
	}
	_ = book.Explain("How do I send it back?").Print(os.Stdout)
	// Output:
	// question       "How do I send it back?"
	// threshold      0.55
	// looked up, en  send back
	// verdict        answered by returns
	//
	// ENTRY    CONFIDENCE  SCORE  MATCHED    IN              TEXT         VERDICT
	// returns  1.00        5.61   send back  en keywords[0]  "send back"  answers
}
