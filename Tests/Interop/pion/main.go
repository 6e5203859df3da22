// Pion as a client with one data channel: pion ROLE ENDPOINT --codec CODEC --label LABEL.
//
// It publishes silence over WHIP or watches over WHEP, because neither has a session without media. It sends each line of its
// standard input as a message, reports the messages that it gets as lines of JSON, and leaves at the end of the input.
//
// ops/build-go makes it from Debian's golang-github-pion-webrtc.v3-dev.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pion/ice/v2"
	"github.com/pion/webrtc/v3"
	"github.com/pion/webrtc/v3/pkg/media"
)

// Opus, 20 ms of silence.
var silence = []byte{0xF8, 0xFF, 0xFE}

const packetTime = 20 * time.Millisecond

var output sync.Mutex

// report writes a line for the test that started this program.
func report(event string, values map[string]any) {
	line := map[string]any{"event": event}
	for name, value := range values {
		line[name] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	fmt.Println(string(text))
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 3 {
		return fmt.Errorf("usage: pion publish|watch ENDPOINT --codec CODEC --label LABEL")
	}
	role, endpoint := os.Args[1], os.Args[2]
	flags := flag.NewFlagSet("pion", flag.ExitOnError)
	label := flags.String("label", "", "the label of the data channel")
	// The option of all peers: this one has no video.
	flags.String("codec", "", "not used")
	if err := flags.Parse(os.Args[3:]); err != nil {
		return err
	}
	connection, err := connect()
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := addAudio(connection, role); err != nil {
		return err
	}
	channel, err := connection.CreateDataChannel(*label, nil)
	if err != nil {
		return err
	}
	channel.OnOpen(func() { report("opened", nil) })
	channel.OnMessage(func(message webrtc.DataChannelMessage) {
		report("message", map[string]any{"text": string(message.Data)})
	})
	session, err := start(connection, endpoint)
	if err != nil {
		return err
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		if err := channel.SendText(strings.TrimSpace(line)); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(http.MethodDelete, session, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	report("ended", map[string]any{"status": response.StatusCode})
	return nil
}

func connect() (*webrtc.PeerConnection, error) {
	codecs := &webrtc.MediaEngine{}
	if err := codecs.RegisterDefaultCodecs(); err != nil {
		return nil, err
	}
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	api := webrtc.NewAPI(webrtc.WithMediaEngine(codecs), webrtc.WithSettingEngine(settings))
	return api.NewPeerConnection(webrtc.Configuration{})
}

func addAudio(connection *webrtc.PeerConnection, role string) error {
	if role == "watch" {
		_, err := connection.AddTransceiverFromKind(
			webrtc.RTPCodecTypeAudio, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly},
		)
		return err
	}
	track, err := webrtc.NewTrackLocalStaticSample(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus}, "audio", "pion")
	if err != nil {
		return err
	}
	direction := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}
	if _, err := connection.AddTransceiverFromTrack(track, direction); err != nil {
		return err
	}
	go func() {
		for range time.Tick(packetTime) {
			// It fails only after the end of the connection.
			if track.WriteSample(media.Sample{Data: silence, Duration: packetTime}) != nil {
				return
			}
		}
	}()
	return nil
}

// start exchanges offer and answer over WHIP or WHEP and returns the URL of the session.
func start(connection *webrtc.PeerConnection, endpoint string) (string, error) {
	offer, err := connection.CreateOffer(nil)
	if err != nil {
		return "", err
	}
	gathered := webrtc.GatheringCompletePromise(connection)
	if err := connection.SetLocalDescription(offer); err != nil {
		return "", err
	}
	<-gathered
	response, err := http.Post(endpoint, "application/sdp", strings.NewReader(connection.LocalDescription().SDP))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("the answer is %d: %s", response.StatusCode, body)
	}
	base, err := url.Parse(endpoint)
	if err != nil {
		return "", err
	}
	session, err := base.Parse(response.Header.Get("Location"))
	if err != nil {
		return "", err
	}
	answer := webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: string(body)}
	return session.String(), connection.SetRemoteDescription(answer)
}
