// go run add.go QUANTITY: adds to the stock under RESOURCE, with the token in FENCING_TOKEN.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
)

type stock struct {
	Quantity int `json:"quantity"`
}

// What the gateway answers: a receipt, or a problem with its code.
type answer struct {
	Rev   int    `json:"rev"`
	Value *stock `json:"value"`
	Code  string `json:"code"`
}

func main() {
	quantity, err := strconv.Atoi(os.Args[1])
	must(err)
	// The seal comes before the read: from here on no older holder can change the document.
	sealed := send("POST", "/seal", nil)
	if sealed.Value == nil {
		sealed.Value = &stock{}
	}
	sealed.Value.Quantity += quantity
	body, err := json.Marshal(sealed.Value)
	must(err)
	fmt.Println("stored as revision", send("PUT", "", body).Rev)
}

func send(method, path string, body []byte) (found answer) {
	url := env("GATEWAY_URL", "http://127.0.0.1:8080") + "/v1/resources/" + os.Getenv("RESOURCE") + path
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	must(err)
	request.Header.Set("Authorization", "Bearer "+env("GATEWAY_KEY", "palisade-on-this-machine-only"))
	request.Header.Set("Fencing-Token", os.Getenv("FENCING_TOKEN"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	must(err)
	defer response.Body.Close()
	must(json.NewDecoder(response.Body).Decode(&found))
	if response.StatusCode >= 300 {
		must(fmt.Errorf("%d %s", response.StatusCode, found.Code))
	}
	return found
}

func env(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
