// What the page says in Japanese. strings-en.js has the same keys, and says how a text is written.

export const strings = {
  // ---- everywhere
  'state.idle': '未接続',
  'state.connecting': '接続しています…',
  'state.disconnected': '切断されました',
  'button.close': '閉じる',
  'sound.turnOn': '音声が出ていません。タップして再生',

  // ---- the call: the view of a channel, and of a call of two
  'people.alone': '参加者はあなただけです',
  'people.count': '{count} 人が参加中',
  'sending.receiver': 'お使いのブラウザが受け取れるのは {share} です。',
  'sending.maximum': 'サーバーからの送信は {share} までです。',
  'sending.silence': 'ネットワークの状態が分からないため、サーバーは {share} で送っています。',
  'sending.network': 'お使いのネットワークでは {share} しか受け取れません。',
  'sending.share': '{demand} Mbps のうち {target} Mbps',
  'limit.cpu': 'この端末の処理が追いつかないため、画質を下げています。',
  'limit.bandwidth': 'ネットワークが遅いため、画質を下げています。',
  'picture.still': '映像が届いていません。',
  'picture.cannotPlay': 'このブラウザは、この映像のコーデック {codec} を再生できません。別のブラウザを使うか、送信者に別のコーデックを選んでもらってください。',
  'network.bad': 'お使いのネットワークが不安定です。',
  'network.both': 'ネットワーク：送信は{uplink}、受信は{downlink}',
  'network.sending': 'ネットワーク：送信は{uplink}',
  'network.receiving': 'ネットワーク：受信は{downlink}',
  'level.1': 'とても良好',
  'level.2': '良好',
  'level.3': 'やや不安定',
  'level.4': '不安定',
  'level.5': 'とても不安定',
  'level.6': '切断',
  'offline.timed-out': '{name} さんの接続が切れました。',
  'offline.became-audience': '{name} さんがステージを降りました。',
  'offline.kicked': '{name} さんが退出させられました。',
  'offline.banned': '{name} さんの参加が禁止されました。',

  // ---- camera and microphone
  'media.refused': 'カメラとマイクの使用が許可されていません。',
  'media.insecure': 'ブラウザがカメラとマイクを許可するのは、https:// と localhost だけです。',
  'media.missing': 'この端末にカメラやマイクが見つかりません。',
  'media.failed': 'カメラまたはマイクを起動できませんでした。',
};
