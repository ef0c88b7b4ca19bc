(function(){
var f=document.currentScript.parentNode,t=Date.now(),m=f.querySelector("[role=status]"),b=f.querySelector("button");
function all(s,c){[].forEach.call(f.querySelectorAll(s),c)}
if(window.fetch)f.addEventListener("submit",function(e){
e.preventDefault();
if(b.disabled)return;
var d=new FormData(f),u=location.href,r=document.referrer;
d.set("_page",/^http/.test(u)?u:r);d.set("_referrer",r);
b.disabled=true;m.textContent="";
all("em",function(x){x.remove()});
all("[aria-invalid]",function(x){x.removeAttribute("aria-invalid")});
setTimeout(function(){d.set("_elapsed",Date.now()-t);fetch(f.getAttribute("action"),{method:"POST",headers:{Accept:"application/json"},body:new URLSearchParams(d)}).then(function(a){return a.json()}).then(function(a){
a=a.data;m.textContent=a.message;
if(a.status){all("label,button",function(x){x.remove()});m.tabIndex=-1;m.focus();if(a.redirectUrl)location.href=a.redirectUrl;return}
b.disabled=false;
(a.errors||[]).reverse().forEach(function(x){
var i=f.querySelector('[name="'+x.field+'"]'),n=document.createElement("em");
if(!i)return;
n.textContent=x.message;i.parentNode.appendChild(n);i.setAttribute("aria-invalid","true");i.focus()})
}).catch(function(){b.disabled=false;m.textContent="OFFLINE"})},Math.max(0,t+1e3-Date.now()))})})()
